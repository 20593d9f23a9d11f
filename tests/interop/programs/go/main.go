// Command probe runs one verb of the Go client: probe VERB JSON. What happened is printed as JSON
// lines; the exit code is 0 when the verb did all it was asked to do.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const graceSeconds = 20

type arguments struct {
	Namesrv    string   `json:"namesrv"`
	Broker     string   `json:"broker"`
	Topic      string   `json:"topic"`
	Group      string   `json:"group"`
	Count      int      `json:"count"`
	Tags       []string `json:"tags"`
	Keys       string   `json:"keys"`
	Body       string   `json:"body"`
	Size       int      `json:"size"`
	Shards     int      `json:"shards"`
	DelayLevel int      `json:"delayLevel"`
	Numbered   bool     `json:"numbered"`
	ReadNums   int      `json:"readQueueNums"`
	WriteNums  int      `json:"writeQueueNums"`
	Perm       int      `json:"perm"`
	Order      bool     `json:"order"`
	Producer   string   `json:"producer"`
	Plan       []string `json:"plan"`
	WaitMs     int      `json:"waitMs"`
	Trace      bool     `json:"trace"`
	Expression string   `json:"expression"`
	SQL        string   `json:"sql"`
	Expected   int      `json:"expected"`
	Failures   int      `json:"failures"`
	MaxRetries int32    `json:"maxReconsumeTimes"`
	RetryLevel int      `json:"retryLevel"`
	LingerMs   int      `json:"lingerMs"`
	PauseMs    int      `json:"pauseMs"`
	AgainMs    int      `json:"againMs"`
	Timeout    int      `json:"timeout"`
	AccessKey  string   `json:"accessKey"`
	SecretKey  string   `json:"secretKey"`
}

func (a arguments) credentials() primitive.Credentials {
	return primitive.Credentials{AccessKey: a.AccessKey, SecretKey: a.SecretKey}
}

func (a arguments) limit() time.Duration {
	return time.Duration(a.Timeout) * time.Second
}

var verbs = map[string]func(arguments) error{
	"send-sync":            sendSync,
	"send-async":           sendAsync,
	"send-oneway":          sendOneway,
	"send-batch":           sendBatch,
	"send-transaction":     sendTransaction,
	"request":              request,
	"respond":              respond,
	"consume-concurrently": func(a arguments) error { return consume(a, false, false) },
	"consume-orderly":      func(a arguments) error { return consume(a, true, false) },
	"consume-broadcast":    func(a arguments) error { return consume(a, false, true) },
	"pull":                 pull,
	"create-topic":         administer(createTopic),
	"delete-topic":         administer(deleteTopic),
	"list-topics":          administer(listTopics),
	"list-groups":          administer(listGroups),
	"publish-queues":       administer(publishQueues),
}

var printing sync.Mutex

// say prints one line; the event comes first so that a reader can tell the lines apart.
func say(event string, fields map[string]any) {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	line := fmt.Sprintf(`{"event":%q`, event)
	if len(fields) > 0 {
		line += "," + string(text[1:])
	} else {
		line += "}"
	}
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(line)
}

func sayMessage(event string, m *primitive.MessageExt) {
	say(event, map[string]any{
		"msgId":           m.MsgId,
		"offsetMsgId":     m.OffsetMsgId,
		"topic":           m.Topic,
		"queueId":         m.Queue.QueueId,
		"queueOffset":     m.QueueOffset,
		"commitLogOffset": m.CommitLogOffset,
		"storeTime":       m.StoreTimestamp,
		"tags":            m.GetTags(),
		"keys":            m.GetKeys(),
		"body":            string(m.Body),
		"sysFlag":         m.SysFlag,
		"reconsumeTimes":  m.ReconsumeTimes,
		"properties":      m.GetProperties(),
	})
}

func main() {
	rlog.SetLogLevel("warn")
	if len(os.Args) != 3 || verbs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: probe VERB JSON")
		os.Exit(2)
	}
	given := arguments{Count: 1, Expected: 1, Timeout: 30, Body: "body", Group: "probe", Producer: "probe_producer",
		Expression: "*", MaxRetries: -1, WaitMs: 20000,
		ReadNums: 8, WriteNums: 8, Perm: 6}
	if err := json.Unmarshal([]byte(os.Args[2]), &given); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	time.AfterFunc(given.limit()+graceSeconds*time.Second, func() {
		fmt.Fprintln(os.Stderr, "the verb took too long")
		os.Exit(3)
	})
	if err := verbs[os.Args[1]](given); err != nil {
		say("error", map[string]any{"error": err.Error()})
		os.Exit(1)
	}
}
