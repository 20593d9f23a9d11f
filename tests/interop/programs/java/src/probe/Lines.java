package probe;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;

/** Writes what happened, one JSON object a line. */
final class Lines {
    private static PrintStream out = System.out;

    private Lines() {
    }

    /** Keeps stdout for our lines: whatever a library prints goes to stderr. */
    static void claimStdout() {
        out = System.out;
        System.setOut(System.err);
    }

    static synchronized void print(String event, Map<String, ?> fields) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("event", event);
        line.putAll(fields);
        out.println(JSON.toJSONString(line, SerializerFeature.WriteNonStringKeyAsString,
            SerializerFeature.DisableCircularReferenceDetect));
        out.flush();
    }

    static void ready() {
        print("ready", Map.of());
    }

    static void done(int count) {
        print("done", Map.of("count", count));
    }

    static void result(Object value) {
        print("result", Map.of("value", value));
    }

    static void error(Throwable failure) {
        print("error", Map.of("error", failure.toString()));
    }

    static void sent(int index, SendResult result) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("index", index);
        fields.put("status", result.getSendStatus().name());
        fields.put("msgId", result.getMsgId());
        fields.put("offsetMsgId", result.getOffsetMsgId());
        fields.put("queueId", result.getMessageQueue().getQueueId());
        fields.put("queueOffset", result.getQueueOffset());
        fields.put("regionId", result.getRegionId());
        if (Newer.has(result, "getRecallHandle", 0)) {
            fields.put("recallHandle", Newer.call(result, "getRecallHandle"));
        }
        print("sent", fields);
    }

    static void message(MessageExt message) {
        print("message", fields(message));
    }

    static Map<String, Object> fields(MessageExt message) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("msgId", message.getMsgId());
        if (message instanceof MessageClientExt) {
            fields.put("offsetMsgId", ((MessageClientExt) message).getOffsetMsgId());
        }
        fields.put("topic", message.getTopic());
        fields.put("queueId", message.getQueueId());
        fields.put("queueOffset", message.getQueueOffset());
        fields.put("commitLogOffset", message.getCommitLogOffset());
        fields.put("storeTime", message.getStoreTimestamp());
        fields.put("tags", message.getTags());
        fields.put("keys", message.getKeys());
        fields.put("body", new String(message.getBody(), StandardCharsets.UTF_8));
        fields.put("sysFlag", message.getSysFlag());
        fields.put("reconsumeTimes", message.getReconsumeTimes());
        fields.put("properties", message.getProperties());
        return fields;
    }
}
