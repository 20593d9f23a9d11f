package probe;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.apache.rocketmq.tools.command.topic.DeleteTopicSubCommand;

/**
 * The verbs of the admin tool. Many result types moved to other packages in 5.x, so they are held
 * as {@code var}: one source for both releases.
 */
final class Admin {
    private static final String CLUSTER = "DefaultCluster";

    interface Question {
        Object ask(DefaultMQAdminExt admin, Args args) throws Exception;
    }

    private Admin() {
    }

    static void register(Map<String, Probe.Verb> verbs) {
        add(verbs, "create-topic", Admin::createTopic);
        add(verbs, "delete-topic", Admin::deleteTopic);
        add(verbs, "topic-list", (admin, args) -> new TreeSet<>(admin.fetchAllTopicList().getTopicList()));
        add(verbs, "topic-route", (admin, args) -> admin.examineTopicRouteInfo(args.topic()));
        add(verbs, "topic-status", Admin::topicStatus);
        add(verbs, "cluster-list", (admin, args) -> admin.examineBrokerClusterInfo());
        add(verbs, "broker-runtime", (admin, args) -> admin.fetchBrokerRuntimeStats(args.text("broker")).getTable());
        add(verbs, "broker-config", (admin, args) -> admin.getBrokerConfig(args.text("broker")));
        add(verbs, "view-message", Admin::viewMessage);
        add(verbs, "query-by-key", Admin::queryByKey);
        add(verbs, "offsets", Admin::offsets);
        add(verbs, "consumer-connection", Admin::consumerConnection);
        add(verbs, "producer-connection", (admin, args) ->
            admin.examineProducerConnectionInfo(args.text("group"), args.topic()));
        add(verbs, "consume-stats", Admin::consumeStats);
        add(verbs, "topic-groups", (admin, args) -> admin.queryTopicConsumeByWho(args.topic()).getGroupList());
        add(verbs, "all-topic-config", (admin, args) ->
            admin.getAllTopicConfig(args.text("broker"), 5000).getTopicConfigTable());
        add(verbs, "all-groups", (admin, args) ->
            admin.getAllSubscriptionGroup(args.text("broker"), 5000).getSubscriptionGroupTable());
        add(verbs, "kv", Admin::keyValue);
    }

    private static void add(Map<String, Probe.Verb> verbs, String name, Question question) {
        verbs.put(name, args -> {
            DefaultMQAdminExt admin = new DefaultMQAdminExt(15_000L);
            admin.setNamesrvAddr(args.namesrv());
            admin.start();
            Lines.result(question.ask(admin, args));
            admin.shutdown();
        });
    }

    private static Object createTopic(DefaultMQAdminExt admin, Args args) throws Exception {
        TopicConfig config = new TopicConfig(args.topic());
        config.setReadQueueNums(args.number("queues", 4));
        config.setWriteQueueNums(args.number("queues", 4));
        for (String broker : masters(admin)) {
            admin.createAndUpdateTopicConfig(broker, config);
        }
        return args.topic();
    }

    private static Object deleteTopic(DefaultMQAdminExt admin, Args args) throws Exception {
        DeleteTopicSubCommand.deleteTopic(admin, CLUSTER, args.topic());
        return args.topic();
    }

    private static Set<String> masters(DefaultMQAdminExt admin) throws Exception {
        Set<String> addresses = new TreeSet<>();
        var cluster = admin.examineBrokerClusterInfo();
        for (String broker : cluster.getClusterAddrTable().get(CLUSTER)) {
            addresses.add(cluster.getBrokerAddrTable().get(broker).getBrokerAddrs().get(0L));
        }
        return addresses;
    }

    private static Object topicStatus(DefaultMQAdminExt admin, Args args) throws Exception {
        Map<String, Object> rows = new LinkedHashMap<>();
        var table = admin.examineTopicStats(args.topic()).getOffsetTable();
        for (MessageQueue queue : new TreeSet<>(table.keySet())) {
            rows.put(String.valueOf(queue.getQueueId()), table.get(queue));
        }
        return rows;
    }

    private static Object viewMessage(DefaultMQAdminExt admin, Args args) throws Exception {
        return Lines.fields(admin.viewMessage(args.topic(), args.text("id")));
    }

    private static Object queryByKey(DefaultMQAdminExt admin, Args args) throws Exception {
        List<Object> found = new ArrayList<>();
        var result = admin.queryMessage(args.topic(), args.text("key"), 64, 0, Long.MAX_VALUE);
        for (MessageExt message : result.getMessageList()) {
            found.add(Lines.fields(message));
        }
        return found;
    }

    private static Object offsets(DefaultMQAdminExt admin, Args args) throws Exception {
        Map<String, Object> rows = new LinkedHashMap<>();
        var route = admin.examineTopicRouteInfo(args.topic());
        for (var data : route.getQueueDatas()) {
            for (int id = 0; id < data.getReadQueueNums(); id++) {
                MessageQueue queue = new MessageQueue(args.topic(), data.getBrokerName(), id);
                Map<String, Object> row = new LinkedHashMap<>();
                row.put("min", admin.minOffset(queue));
                row.put("max", admin.maxOffset(queue));
                row.put("atTime", admin.searchOffset(queue, args.big("time", 0)));
                row.put("earliest", admin.earliestMsgStoreTime(queue));
                rows.put(String.valueOf(id), row);
            }
        }
        return rows;
    }

    private static Object consumerConnection(DefaultMQAdminExt admin, Args args) throws Exception {
        var connection = admin.examineConsumerConnectionInfo(args.text("group"));
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("clients", connection.getConnectionSet());
        row.put("consumeType", connection.getConsumeType());
        row.put("messageModel", connection.getMessageModel());
        row.put("consumeFromWhere", connection.getConsumeFromWhere());
        row.put("subscriptions", connection.getSubscriptionTable());
        return row;
    }

    private static Object consumeStats(DefaultMQAdminExt admin, Args args) throws Exception {
        List<Object> rows = new ArrayList<>();
        var table = admin.examineConsumeStats(args.text("group")).getOffsetTable();
        for (MessageQueue queue : new TreeSet<>(table.keySet())) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("topic", queue.getTopic());
            row.put("queueId", queue.getQueueId());
            row.put("brokerOffset", table.get(queue).getBrokerOffset());
            row.put("consumerOffset", table.get(queue).getConsumerOffset());
            rows.add(row);
        }
        return rows;
    }

    private static Object keyValue(DefaultMQAdminExt admin, Args args) throws Exception {
        String space = args.text("space");
        admin.createAndUpdateKvConfig(space, "key", args.text("value"));
        Object table = admin.getKVListByNamespace(space).getTable();
        admin.deleteKvConfig(space, "key");
        return table;
    }
}
