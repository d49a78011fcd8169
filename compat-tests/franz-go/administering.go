package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type admin struct {
	client *kgo.Client
	admin  *kadm.Client
}

func newAdmin(f fields) (handle, error) {
	secured, err := f.Login.options()
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(secured, kgo.SeedBrokers(f.Bootstrap))...)
	if err != nil {
		return nil, err
	}
	return &admin{client, kadm.NewClient(client)}, nil
}

func (a *admin) take(f fields) (any, error) {
	ctx := context.Background()
	switch f.Do {
	case "create":
		configs := map[string]*string{}
		for name, value := range f.Config {
			configs[name] = kadm.StringPtr(value)
		}
		_, err := a.admin.CreateTopic(ctx, int32(f.PartitionCount), -1, configs, f.Topic)
		return nil, err
	case "grow":
		found, err := a.admin.UpdatePartitions(ctx, f.PartitionCount, f.Topic)
		return nil, errors.Join(err, found.Error())
	case "delete":
		found, err := a.admin.DeleteTopics(ctx, f.Topic)
		return nil, errors.Join(err, found.Error())
	case "topics":
		found, err := a.admin.ListTopics(ctx)
		return found.Names(), err
	case "configs":
		found, err := a.admin.DescribeTopicConfigs(ctx, f.Topic)
		configs := map[string]string{}
		for _, each := range found {
			err = errors.Join(err, each.Err)
			for _, config := range each.Configs {
				configs[config.Key] = config.MaybeValue()
			}
		}
		return configs, err
	case "alter":
		changes := []kadm.AlterConfig{}
		for name, value := range f.Config {
			changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: kadm.StringPtr(value)})
		}
		found, err := a.admin.AlterTopicConfigs(ctx, changes, f.Topic)
		for _, each := range found {
			err = errors.Join(err, each.Err)
		}
		return nil, err
	case "delete_records":
		before := kadm.Offsets{}
		before.AddOffset(f.Topic, *f.Partition, f.Before, -1)
		found, err := a.admin.DeleteRecords(ctx, before)
		return nil, errors.Join(err, found.Error())
	case "groups":
		found, err := a.admin.ListGroups(ctx)
		return found.Groups(), err
	case "group":
		found, err := a.admin.DescribeGroups(ctx, f.Group)
		return []any{found[f.Group].State, len(found[f.Group].Members)}, errors.Join(err, found[f.Group].Err)
	case "group_offsets":
		found, err := a.admin.FetchOffsets(ctx, f.Group)
		offsets := map[string]int64{}
		for partition, at := range found[f.Topic] {
			offsets[strconv.Itoa(int(partition))] = at.At
		}
		return offsets, err
	case "delete_group":
		found, err := a.admin.DeleteGroup(ctx, f.Group)
		return nil, errors.Join(err, found.Err)
	case "close":
		a.client.Close()
		return nil, nil
	}
	return nil, fmt.Errorf("an admin client has no %s", f.Do)
}
