package main

import (
	"context"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

const adminSeconds = 10

// administer opens an admin, does one deed with it and prints what the deed returned.
func administer(deed func(context.Context, admin.Admin, arguments) (any, error)) func(arguments) error {
	return func(a arguments) error {
		resolver := primitive.NewPassthroughResolver([]string{a.Namesrv})
		opened, err := admin.NewAdmin(admin.WithResolver(resolver))
		if err != nil {
			return err
		}
		defer opened.Close()
		value, err := deed(context.Background(), opened, a)
		if err != nil {
			return err
		}
		say("result", map[string]any{"value": value})
		return nil
	}
}

func createTopic(ctx context.Context, opened admin.Admin, a arguments) (any, error) {
	return nil, opened.CreateTopic(ctx,
		admin.WithTopicCreate(a.Topic),
		admin.WithBrokerAddrCreate(a.Broker),
		admin.WithReadQueueNums(a.ReadNums),
		admin.WithWriteQueueNums(a.WriteNums),
		admin.WithPerm(a.Perm),
		admin.WithOrder(a.Order),
	)
}

// deleteTopic finds the broker by the topic's route when it is given none.
func deleteTopic(ctx context.Context, opened admin.Admin, a arguments) (any, error) {
	return nil, opened.DeleteTopic(ctx, admin.WithTopicDelete(a.Topic), admin.WithBrokerAddrDelete(a.Broker))
}

func listTopics(ctx context.Context, opened admin.Admin, _ arguments) (any, error) {
	found, err := opened.FetchAllTopicList(ctx)
	if err != nil {
		return nil, err
	}
	return found.TopicList, nil
}

func listGroups(ctx context.Context, opened admin.Admin, a arguments) (any, error) {
	found, err := opened.GetAllSubscriptionGroup(ctx, a.Broker, adminSeconds*time.Second)
	if err != nil {
		return nil, err
	}
	return map[string]any{"groups": found.SubscriptionGroupTable, "version": found.DataVersion}, nil
}

func publishQueues(ctx context.Context, opened admin.Admin, a arguments) (any, error) {
	found, err := opened.FetchPublishMessageQueues(ctx, a.Topic)
	if err != nil {
		return nil, err
	}
	queues := []map[string]any{}
	for _, queue := range found {
		queues = append(queues, map[string]any{
			"topic": queue.Topic, "broker": queue.BrokerName, "queueId": queue.QueueId,
		})
	}
	return queues, nil
}
