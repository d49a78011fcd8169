package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// sharer is a member of a share group. What it says of records is sent by "commit".
type sharer struct {
	client *kgo.Client
	held   map[string]*kgo.Record
	isAuto bool

	sync.Mutex
	outcomes map[string]int16
}

func newSharer(f fields) (handle, error) {
	s := &sharer{held: map[string]*kgo.Record{}, isAuto: f.Mode != "explicit", outcomes: map[string]int16{}}
	options := []kgo.Opt{
		kgo.SeedBrokers(f.Bootstrap),
		kgo.ShareGroup(f.Group),
		kgo.ConsumeTopics(f.Topic),
		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.ShareAckCallback(s.note),
	}
	if f.RecordsMax != nil {
		options = append(options, kgo.ShareMaxRecords(*f.RecordsMax), kgo.ShareMaxRecordsStrict())
	}
	secured, err := f.Login.options()
	if err != nil {
		return nil, err
	}
	s.client, err = kgo.NewClient(append(options, secured...)...)
	return s, err
}

func (s *sharer) note(_ *kgo.Client, results kgo.ShareAckResults) {
	s.Lock()
	defer s.Unlock()
	for _, each := range results {
		var refused *kerr.Error
		code := int16(0)
		if errors.As(each.Err, &refused) {
			code = refused.Code
		} else if each.Err != nil {
			code = -1
		}
		s.outcomes[strconv.Itoa(int(each.Partition))] = code
	}
}

func (s *sharer) take(f fields) (any, error) {
	ctx := context.Background()
	switch f.Do {
	case "poll":
		return s.poll(time.Duration(f.Ms) * time.Millisecond)
	case "acknowledge":
		place := fmt.Sprint(*f.Partition, "-", f.Offset)
		s.client.MarkAcks(kgo.AckStatus(f.Type), s.held[place])
		return nil, nil
	case "commit":
		if s.isAuto {
			s.client.MarkAcks(kgo.AckAccept)
		}
		wait, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		if err := s.client.FlushAcks(wait); err != nil {
			return nil, err
		}
		s.Lock()
		defer s.Unlock()
		found := s.outcomes
		s.outcomes = map[string]int16{}
		return found, nil
	case "close":
		s.client.Close()
		return nil, nil
	}
	return nil, fmt.Errorf("a member of a share group has no %s", f.Do)
}

func (s *sharer) poll(wait time.Duration) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	fetches := s.client.PollFetches(ctx)
	found := [][]any{}
	for _, failed := range fetches.Errors() {
		if !errors.Is(failed.Err, context.DeadlineExceeded) {
			return nil, failed.Err
		}
	}
	fetches.EachRecord(func(r *kgo.Record) {
		s.held[fmt.Sprint(r.Partition, "-", r.Offset)] = r
		found = append(found, []any{r.Partition, r.Offset, r.Value, r.DeliveryCount()})
	})
	return found, nil
}
