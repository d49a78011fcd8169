package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type producer struct {
	client *kgo.Client
}

// perRecord leaves the choice to the usual partitioner where a record names no partition.
type perRecord struct {
	kgo.TopicPartitioner
}

func (p perRecord) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || p.TopicPartitioner.RequiresConsistency(r)
}

func (p perRecord) Partition(r *kgo.Record, n int) int {
	if r.Partition >= 0 {
		return int(r.Partition)
	}
	return p.TopicPartitioner.Partition(r, n)
}

func (p perRecord) OnNewBatch() {
	if told, is := p.TopicPartitioner.(kgo.TopicPartitionerOnNewBatch); is {
		told.OnNewBatch()
	}
}

type partitioner struct{}

func (partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return perRecord{kgo.StickyKeyPartitioner(nil).ForTopic(topic)}
}

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var acks = map[int]kgo.Acks{-1: kgo.AllISRAcks(), 0: kgo.NoAck(), 1: kgo.LeaderAck()}

func newProducer(f fields) (handle, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(f.Bootstrap),
		kgo.AllowAutoTopicCreation(),
		kgo.RequiredAcks(acks[f.Acks]),
		kgo.ProducerBatchCompression(codecs[f.Codec]),
		kgo.ProducerLinger(time.Duration(f.LingerMs) * time.Millisecond),
		kgo.ProducerBatchMaxBytes(f.RequestBytesMax),
		kgo.RecordPartitioner(partitioner{}),
	}
	if !f.IsIdempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	if f.TransactionalId != nil {
		options = append(options, kgo.TransactionalID(*f.TransactionalId))
	}
	secured, err := f.Login.options()
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(options, secured...)...)
	return &producer{client}, err
}

func (p *producer) take(f fields) (any, error) {
	switch f.Do {
	case "send":
		record := &kgo.Record{Topic: f.Topic, Key: f.Key, Value: f.Value, Partition: -1}
		if f.Partition != nil {
			record.Partition = *f.Partition
		}
		if f.TimestampMs != nil {
			record.Timestamp = time.UnixMilli(*f.TimestampMs)
		}
		for _, pair := range f.Headers {
			header := kgo.RecordHeader{Key: *pair[0]}
			if pair[1] != nil {
				header.Value, _ = base64.StdEncoding.DecodeString(*pair[1])
			}
			record.Headers = append(record.Headers, header)
		}
		return later(func(answer func(any, error)) {
			p.client.Produce(context.Background(), record, func(r *kgo.Record, err error) {
				answer([]int64{int64(r.Partition), r.Offset}, err)
			})
		}), nil
	case "flush":
		return nil, p.client.Flush(context.Background())
	case "begin":
		return nil, p.client.BeginTransaction()
	case "commit", "abort":
		if err := p.client.Flush(context.Background()); err != nil {
			return nil, err
		}
		return nil, p.client.EndTransaction(context.Background(), kgo.TransactionEndTry(f.Do == "commit"))
	case "close":
		p.client.Close()
		return nil, nil
	}
	return nil, fmt.Errorf("a producer has no %s", f.Do)
}
