package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// plan says what becomes of each message, in turn: the first word is the answer of the local
// transaction, the others those of the checks, the last repeated. As in the Java program.
type plan struct {
	guard     sync.Mutex
	words     []string
	asked     map[int]int
	open      map[int]bool
	undecided sync.WaitGroup
}

func newPlan(a arguments) *plan {
	p := &plan{words: a.Plan, asked: map[int]int{}, open: map[int]bool{}}
	if len(p.words) == 0 {
		p.words = []string{"commit", "rollback", "unknown commit"}
	}
	for i := 0; i < a.Count; i++ {
		p.open[i] = true
		p.undecided.Add(1)
	}
	return p
}

func (p *plan) next(body []byte) primitive.LocalTransactionState {
	p.guard.Lock()
	defer p.guard.Unlock()
	text := string(body)
	index, err := strconv.Atoi(text[strings.LastIndex(text, "-")+1:])
	if err != nil {
		panic(err)
	}
	words := strings.Fields(p.words[index%len(p.words)])
	word := words[min(p.asked[index], len(words)-1)]
	p.asked[index]++
	if word == "unknown" {
		return primitive.UnknowState
	}
	if p.open[index] {
		p.open[index] = false
		p.undecided.Done()
	}
	if word == "commit" {
		return primitive.CommitMessageState
	}
	return primitive.RollbackMessageState
}

func (p *plan) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	return p.next(m.Body)
}

func (p *plan) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	sayMessage("checked", m)
	return p.next(m.Body)
}

func sendTransaction(a arguments) error {
	decisions := newPlan(a)
	p, err := rocketmq.NewTransactionProducer(decisions, options(a)...)
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	for i, m := range messages(a) {
		result, err := p.SendMessageInTransaction(context.Background(), m)
		if err != nil {
			return err
		}
		saySent(i, result.SendResult)
	}
	complete := make(chan struct{})
	go func() {
		decisions.undecided.Wait()
		close(complete)
	}()
	select {
	case <-complete:
	case <-time.After(a.limit()):
		return fmt.Errorf("some transactions were never decided")
	}
	say("done", map[string]any{"count": a.Count})
	// The outcome of a check leaves one-way, and a broker that did not take it checks again.
	time.Sleep(2500 * time.Millisecond)
	return p.Shutdown()
}
