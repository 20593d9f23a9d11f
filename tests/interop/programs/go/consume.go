package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// tally counts messages, and fails each one as often as asked before it counts.
type tally struct {
	guard    sync.Mutex
	attempts map[string]int
	count    int
	complete chan struct{}
}

func (t *tally) arrived(a arguments, m *primitive.MessageExt) (failed bool) {
	t.guard.Lock()
	defer t.guard.Unlock()
	t.attempts[m.MsgId]++
	if t.attempts[m.MsgId] <= a.Failures {
		sayMessage("failed", m)
		return true
	}
	sayMessage("message", m)
	t.count++
	if t.count == a.Expected {
		close(t.complete)
	}
	return false
}

func consume(a arguments, orderly bool, broadcast bool) error {
	model := consumer.Clustering
	if broadcast {
		model = consumer.BroadCasting
	}
	options := []consumer.Option{
		consumer.WithNameServer(primitive.NamesrvAddr{a.Namesrv}),
		consumer.WithGroupName(a.Group),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumerModel(model),
		consumer.WithConsumerOrder(orderly),
		consumer.WithMaxReconsumeTimes(a.MaxRetries),
	}
	if a.AccessKey != "" {
		options = append(options, consumer.WithCredentials(a.credentials()))
	}
	if a.Trace {
		options = append(options, consumer.WithTrace(traced(a)))
	}
	c, err := rocketmq.NewPushConsumer(options...)
	if err != nil {
		return err
	}
	counted := &tally{attempts: map[string]int{}, complete: make(chan struct{})}
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: a.Expression}
	if a.SQL != "" {
		selector = consumer.MessageSelector{Type: consumer.SQL92, Expression: a.SQL}
	}
	err = c.Subscribe(a.Topic, selector,
		func(ctx context.Context, batch ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, m := range batch {
				if !counted.arrived(a, m) {
					continue
				}
				if orderly {
					return consumer.SuspendCurrentQueueAMoment, nil
				}
				if a.RetryLevel > 0 {
					concurrent, _ := primitive.GetConcurrentlyCtx(ctx)
					concurrent.DelayLevelWhenNextConsume = a.RetryLevel
				}
				return consumer.ConsumeRetryLater, nil
			}
			return consumer.ConsumeSuccess, nil
		})
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	say("ready", nil)
	select {
	case <-counted.complete:
	case <-time.After(a.limit()):
		return fmt.Errorf("only %d messages arrived in time", counted.count)
	}
	time.Sleep(time.Duration(a.LingerMs) * time.Millisecond)
	if err := c.Shutdown(); err != nil {
		return err
	}
	say("done", map[string]any{"count": counted.count})
	return nil
}

// pull polls until the expected number of messages has come, and acknowledges them.
func pull(a arguments) error {
	c, err := rocketmq.NewPullConsumer(
		consumer.WithNameServer(primitive.NamesrvAddr{a.Namesrv}),
		consumer.WithGroupName(a.Group),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	)
	if err != nil {
		return err
	}
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: a.Expression}
	if err := c.Subscribe(a.Topic, selector); err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	say("ready", nil)
	end := time.Now().Add(a.limit())
	count := 0
	for count < a.Expected && time.Now().Before(end) {
		request, err := c.Poll(context.Background(), time.Second)
		if consumer.IsNoNewMsgError(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, m := range request.GetMsgList() {
			sayMessage("message", m)
			count++
		}
		c.ACK(context.Background(), request, consumer.ConsumeSuccess)
	}
	if err := c.PersistOffset(context.Background(), a.Topic); err != nil {
		return err
	}
	if err := c.Shutdown(); err != nil {
		return err
	}
	say("done", map[string]any{"count": count})
	if count < a.Expected {
		return fmt.Errorf("only %d messages arrived in time", count)
	}
	return nil
}
