package main

import (
	"context"
	"fmt"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

func request(a arguments) error {
	p, err := started(a)
	if err != nil {
		return err
	}
	for i, m := range messages(a) {
		reply, err := p.Request(context.Background(), time.Duration(a.WaitMs)*time.Millisecond, m)
		if err != nil {
			say("late", map[string]any{"index": i, "error": err.Error()})
			continue
		}
		say("reply", map[string]any{"index": i, "body": string(reply.Body), "properties": reply.GetProperties()})
	}
	say("done", map[string]any{"count": a.Count})
	return p.Shutdown()
}

// respond answers each question with its own words after "re: ".
func respond(a arguments) error {
	p, err := started(a)
	if err != nil {
		return err
	}
	c, err := rocketmq.NewPushConsumer(
		consumer.WithNameServer(primitive.NamesrvAddr{a.Namesrv}),
		consumer.WithGroupName(a.Group),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	)
	if err != nil {
		return err
	}
	counted := &tally{attempts: map[string]int{}, complete: make(chan struct{})}
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}
	err = c.Subscribe(a.Topic, selector,
		func(ctx context.Context, batch ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, m := range batch {
				// This client announces itself to the broker a moment after its first question.
				time.Sleep(time.Second)
				reply, err := consumer.CreateReplyMessage(m, nil)
				if err == nil {
					// It would take the body for properties.
					reply.Body = []byte("re: " + string(m.Body))
					_, err = p.SendSync(ctx, reply)
				}
				if err != nil {
					say("error", map[string]any{"error": err.Error()})
				}
				counted.arrived(a, m)
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
		return fmt.Errorf("only %d questions came", counted.count)
	}
	if err := c.Shutdown(); err != nil {
		return err
	}
	say("done", map[string]any{"count": counted.count})
	return p.Shutdown()
}
