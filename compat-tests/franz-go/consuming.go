package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type consumer struct {
	options []kgo.Opt
	client  *kgo.Client
	admin   *kadm.Client
	group   string

	sync.Mutex
	assigned map[int32]bool
}

func newConsumer(f fields) (handle, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(f.Bootstrap),
		kgo.FetchMaxWait(time.Duration(f.WaitMsMax) * time.Millisecond),
		kgo.FetchMaxPartitionBytes(f.BytesMax),
	}
	return ready(&consumer{options: options}, f)
}

func newMember(f fields) (handle, error) {
	c := &consumer{group: f.Group, assigned: map[int32]bool{}}
	c.options = []kgo.Opt{
		kgo.SeedBrokers(f.Bootstrap),
		kgo.ConsumerGroup(f.Group),
		kgo.ConsumeTopics(f.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.OnPartitionsAssigned(c.change(true)),
		kgo.OnPartitionsRevoked(c.change(false)),
		kgo.OnPartitionsLost(c.change(false)),
	}
	if strings.HasPrefix(f.Topic, "^") {
		c.options = append(c.options, kgo.ConsumeRegex())
	}
	if f.Protocol == "consumer" {
		// Its timeouts are the server's.
		c.options = append(c.options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	} else {
		c.options = append(c.options, kgo.HeartbeatInterval(300*time.Millisecond))
	}
	if f.SessionMs != nil {
		c.options = append(c.options, kgo.SessionTimeout(time.Duration(*f.SessionMs)*time.Millisecond))
	}
	if f.Instance != nil {
		c.options = append(c.options, kgo.InstanceID(*f.Instance))
	}
	return ready(c, f)
}

func ready(c *consumer, f fields) (handle, error) {
	secured, err := f.Login.options()
	if err != nil {
		return nil, err
	}
	c.options = append(c.options, secured...)
	return c, c.open()
}

func (c *consumer) open(more ...kgo.Opt) error {
	if c.client != nil {
		c.client.Close()
	}
	client, err := kgo.NewClient(append(more, c.options...)...)
	if err == nil {
		c.client, c.admin = client, kadm.NewClient(client)
	}
	return err
}

func (c *consumer) change(has bool) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
		c.Lock()
		defer c.Unlock()
		for _, partitions := range changed {
			for _, each := range partitions {
				if has {
					c.assigned[each] = true
				} else {
					delete(c.assigned, each)
				}
			}
		}
	}
}

func (c *consumer) take(f fields) (any, error) {
	ctx := context.Background()
	switch f.Do {
	case "assign":
		places := map[int32]kgo.Offset{}
		for _, each := range f.Partitions {
			places[each] = kgo.NewOffset().At(f.Offset)
		}
		return nil, c.open(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{f.Topic: places}))
	case "seek":
		place := map[int32]kgo.EpochOffset{*f.Partition: {Epoch: -1, Offset: f.Offset}}
		c.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{f.Topic: place})
		return nil, nil
	case "poll":
		return c.poll(time.Duration(f.Ms) * time.Millisecond)
	case "partitions":
		found, err := c.admin.ListTopics(ctx, f.Topic)
		if err != nil {
			return nil, err
		}
		return found[f.Topic].Partitions.Numbers(), found[f.Topic].Err
	case "beginning":
		return offset(f, false)(c.admin.ListStartOffsets(ctx, f.Topic))
	case "end":
		return offset(f, false)(c.admin.ListEndOffsets(ctx, f.Topic))
	case "offset_at":
		// It answers with the end, and a negative time, where there is nothing as late as that.
		return offset(f, true)(c.admin.ListOffsetsAfterMilli(ctx, *f.TimestampMs, f.Topic))
	case "assignment":
		c.Lock()
		defer c.Unlock()
		numbers := []int32{}
		for each := range c.assigned {
			numbers = append(numbers, each)
		}
		return numbers, nil
	case "commit":
		return nil, c.client.CommitUncommittedOffsets(ctx)
	case "committed":
		found, err := c.admin.FetchOffsets(ctx, c.group)
		if at, is := found.Lookup(f.Topic, *f.Partition); is {
			return at.At, errors.Join(err, at.Err)
		}
		return nil, err
	case "close":
		c.client.Close()
		return nil, nil
	}
	return nil, fmt.Errorf("a consumer has no %s", f.Do)
}

func offset(f fields, mayBeNone bool) func(kadm.ListedOffsets, error) (any, error) {
	return func(found kadm.ListedOffsets, err error) (any, error) {
		at, is := found.Lookup(f.Topic, *f.Partition)
		if err != nil || !is {
			return nil, errors.Join(err, fmt.Errorf("%s %d is not told", f.Topic, *f.Partition))
		}
		if mayBeNone && at.Timestamp < 0 {
			return nil, at.Err
		}
		return at.Offset, at.Err
	}
}

func (c *consumer) poll(wait time.Duration) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	fetches := c.client.PollFetches(ctx)
	for _, each := range fetches.Errors() {
		// That the group cannot be reached is told for information; the client goes on trying.
		var away *kgo.ErrGroupSession
		if !errors.Is(each.Err, context.DeadlineExceeded) && !errors.As(each.Err, &away) {
			return nil, each.Err
		}
	}
	found := []any{}
	fetches.EachRecord(func(r *kgo.Record) {
		headers := [][2]any{}
		for _, each := range r.Headers {
			headers = append(headers, [2]any{each.Key, each.Value})
		}
		found = append(found, []any{r.Partition, r.Offset, r.Key, r.Value, headers, r.Timestamp.UnixMilli()})
	})
	return found, nil
}
