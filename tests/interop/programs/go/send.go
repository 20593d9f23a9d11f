package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

func options(a arguments) []producer.Option {
	all := []producer.Option{
		producer.WithNameServer(primitive.NamesrvAddr{a.Namesrv}),
		producer.WithGroupName(a.Producer),
		producer.WithSendMsgTimeout(10 * time.Second),
	}
	if a.AccessKey != "" {
		all = append(all, producer.WithCredentials(a.credentials()))
	}
	if a.Shards > 0 {
		all = append(all, producer.WithQueueSelector(producer.NewHashQueueSelector()))
	}
	if a.Trace {
		all = append(all, producer.WithTrace(traced(a)))
	}
	return all
}

func traced(a arguments) *primitive.TraceConfig {
	return &primitive.TraceConfig{
		Access:   primitive.Local,
		Resolver: primitive.NewPassthroughResolver([]string{a.Namesrv}),
	}
}

func started(a arguments) (rocketmq.Producer, error) {
	p, err := rocketmq.NewProducer(options(a)...)
	if err != nil {
		return nil, err
	}
	return p, p.Start()
}

// messages are the same as those of the Java program: prefix-INDEX or prefix-SHARD-INDEX.
func messages(a arguments) []*primitive.Message {
	var all []*primitive.Message
	for i := 0; i < a.Count; i++ {
		body := fmt.Sprintf("%s-%d", a.Body, i)
		if a.Shards > 0 {
			body = fmt.Sprintf("%s-%d-%d", a.Body, i%a.Shards, i)
		}
		if len(body) < a.Size {
			body += strings.Repeat(".", a.Size-len(body))
		}
		m := primitive.NewMessage(a.Topic, []byte(body))
		if len(a.Tags) > 0 {
			m.WithTag(a.Tags[i%len(a.Tags)])
		}
		if a.Keys != "" {
			m.WithKeys([]string{fmt.Sprintf("%s%d", a.Keys, i)})
		}
		if a.DelayLevel > 0 {
			m.WithDelayTimeLevel(a.DelayLevel)
		}
		if a.Numbered {
			m.WithProperty("n", fmt.Sprint(i))
		}
		if a.Shards > 0 {
			m.WithShardingKey(fmt.Sprintf("shard%d", i%a.Shards))
		}
		all = append(all, m)
	}
	return all
}

func saySent(index int, r *primitive.SendResult) {
	status := map[primitive.SendStatus]string{primitive.SendOK: "SEND_OK"}[r.Status]
	say("sent", map[string]any{
		"index":       index,
		"status":      status,
		"msgId":       r.MsgID,
		"offsetMsgId": r.OffsetMsgID,
		"queueId":     r.MessageQueue.QueueId,
		"queueOffset": r.QueueOffset,
		"regionId":    r.RegionID,
	})
}

func sendSync(a arguments) error {
	p, err := started(a)
	if err != nil {
		return err
	}
	for i, m := range messages(a) {
		result, err := sendAgain(a, p, i, m)
		if err != nil {
			return err
		}
		saySent(i, result)
		time.Sleep(time.Duration(a.PauseMs) * time.Millisecond)
	}
	say("done", map[string]any{"count": a.Count})
	time.Sleep(time.Duration(a.LingerMs) * time.Millisecond)
	return p.Shutdown()
}

// sendAgain does as an application that has to get its message through: againMs later once more, until time is up.
func sendAgain(a arguments, p rocketmq.Producer, index int, m *primitive.Message) (*primitive.SendResult, error) {
	for end := time.Now().Add(a.limit()); ; {
		result, err := p.SendSync(context.Background(), m)
		if err == nil || a.AgainMs == 0 || time.Now().After(end) {
			return result, err
		}
		say("unsent", map[string]any{"index": index})
		time.Sleep(time.Duration(a.AgainMs) * time.Millisecond)
	}
}

func sendAsync(a arguments) error {
	p, err := started(a)
	if err != nil {
		return err
	}
	var left sync.WaitGroup
	failures := make(chan error, a.Count)
	for i, m := range messages(a) {
		index := i
		left.Add(1)
		err := p.SendAsync(context.Background(), func(_ context.Context, r *primitive.SendResult, err error) {
			defer left.Done()
			if err != nil {
				failures <- err
				return
			}
			saySent(index, r)
		}, m)
		if err != nil {
			return err
		}
	}
	left.Wait()
	if len(failures) > 0 {
		return <-failures
	}
	say("done", map[string]any{"count": a.Count})
	return p.Shutdown()
}

func sendOneway(a arguments) error {
	p, err := started(a)
	if err != nil {
		return err
	}
	for _, m := range messages(a) {
		if err := p.SendOneWay(context.Background(), m); err != nil {
			return err
		}
	}
	// One answered send on the same connection: what was sent before it has left by then.
	fence := primitive.NewMessage(a.Topic, []byte("fence"))
	fence.WithTag("fence")
	result, err := p.SendSync(context.Background(), fence)
	if err != nil {
		return err
	}
	saySent(a.Count, result)
	say("done", map[string]any{"count": a.Count})
	return p.Shutdown()
}

func sendBatch(a arguments) error {
	p, err := started(a)
	if err != nil {
		return err
	}
	result, err := p.SendSync(context.Background(), messages(a)...)
	if err != nil {
		return err
	}
	saySent(0, result)
	say("done", map[string]any{"count": a.Count})
	return p.Shutdown()
}
