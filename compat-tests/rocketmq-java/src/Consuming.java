import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;

/** What push consumers do. */
final class Consuming {
    private static final long SECONDS = 60;

    private Consuming() {}

    static void register(Map<String, Program.Scenario> scenarios) {
        scenarios.put("consume", Consuming::consume);
        scenarios.put("tags", Consuming::tags);
        scenarios.put("sql", Consuming::sql);
        scenarios.put("ordered", Consuming::ordered);
        scenarios.put("clustering", Consuming::clustering);
        scenarios.put("broadcasting", Consuming::broadcasting);
        scenarios.put("reset", Consuming::reset);
        scenarios.put("reset-suspended", Consuming::resetSuspended);
    }

    static MessageListenerConcurrently into(List<MessageExt> found) {
        return (messages, context) -> {
            found.addAll(messages);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
    }

    static Set<String> bodies(List<MessageExt> messages) {
        synchronized (messages) {
            return messages.stream().map(m -> new String(m.getBody()))
                    .collect(Collectors.toCollection(TreeSet::new));
        }
    }

    /** Reads with a new consumer until so many have come; a clean stop keeps the group's progress. */
    static List<MessageExt> all(String namesrv, String topic, String group, String tags, int count)
            throws Exception {
        List<MessageExt> found = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = Clients.push(namesrv, group);
        consumer.subscribe(topic, tags);
        consumer.registerMessageListener(into(found));
        consumer.start();
        Program.await(count + " messages, " + found.size(), SECONDS, () -> found.size() >= count);
        consumer.shutdown();
        Program.same(count, found.size(), "no more than were sent");
        return found;
    }

    /** consume NAMESRV TOPIC GROUP COUNT: the bodies, with commas between. */
    static String consume(String[] words) throws Exception {
        List<MessageExt> found = all(words[1], words[2], words[3], "*", Integer.parseInt(words[4]));
        return found.stream().map(m -> new String(m.getBody())).collect(Collectors.joining(","));
    }

    static void fill(String namesrv, String topic, int count) throws Exception {
        DefaultMQProducer producer = Clients.producer(namesrv);
        for (int number = 0; number < count; number++) {
            producer.send(Sending.message(topic, number));
        }
        producer.shutdown();
    }

    /** A group that is set back while it reads: its living consumer begins anew. */
    static String reset(String[] words) throws Exception {
        String topic = words[2];
        String group = "reset-" + topic;
        fill(words[1], topic, 12);
        List<MessageExt> found = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = Clients.push(words[1], group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(into(found));
        consumer.start();
        Program.await("12 messages", SECONDS, () -> found.size() >= 12);
        MQClientInstance client = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory();
        String broker = client.findBrokerAddressInPublish(found.get(0).getBrokerName());
        client.getMQClientAPIImpl().invokeBrokerToResetOffset(broker, topic, group, 0, true, 5000);
        Program.await("12 once more", SECONDS, () -> found.size() >= 24);
        consumer.shutdown();
        Program.same(12, bodies(found).size(), "different messages");
        return String.valueOf(found.size());
    }

    /**
     * A group that is reset while its consumer is suspended and does not pull: only a request of the broker
     * (220) reaches it. The client resumes by itself when it has set its offsets.
     */
    static String resetSuspended(String[] words) throws Exception {
        String topic = words[2];
        String group = "suspended-" + topic;
        fill(words[1], topic, 12);
        List<MessageExt> found = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = Clients.push(words[1], group);
        consumer.setPersistConsumerOffsetInterval(200);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(into(found));
        consumer.start();
        Program.await("12 messages", SECONDS, () -> found.size() >= 12);
        MQClientInstance client = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory();
        String broker = client.findBrokerAddressInPublish(found.get(0).getBrokerName());
        Program.await("the offsets that the member reports (221)", SECONDS, () -> client.getMQClientAPIImpl()
                .invokeBrokerToGetConsumerStatus(broker, topic, group, "", 5000)
                .getOrDefault(client.getClientId(), Collections.emptyMap())
                .values().stream().mapToLong(Long::longValue).sum() == 12);
        consumer.suspend();
        Program.await("a reset of offsets that are committed", SECONDS, () -> {
            try {
                client.getMQClientAPIImpl().invokeBrokerToResetOffset(broker, topic, group, 0, true, 5000);
                return true;
            } catch (MQClientException nothingCommitted) {
                return false;
            }
        });
        Program.await("12 once more", SECONDS, () -> found.size() >= 24);
        consumer.shutdown();
        Program.same(12, bodies(found).size(), "different messages");
        return String.valueOf(found.size());
    }

    static String tags(String[] words) throws Exception {
        fill(words[1], words[2], 30);
        List<MessageExt> found = all(words[1], words[2], "tags-" + words[2], "TagA || TagC", 20);
        for (MessageExt message : found) {
            Program.check(!"TagB".equals(message.getTags()), "only what was asked for");
        }
        return String.valueOf(found.size());
    }

    static String sql(String[] words) throws Exception {
        fill(words[1], words[2], 20);
        List<MessageExt> found = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = Clients.push(words[1], "sql-" + words[2]);
        consumer.subscribe(words[2], MessageSelector.bySql(
                "(TAGS is not null and TAGS in ('TagA','TagB')) and a between 0 and 9 and not (color = 'red')"));
        consumer.registerMessageListener(into(found));
        consumer.start();
        Program.await("3 messages", SECONDS, () -> found.size() >= 3);
        consumer.shutdown();
        DefaultMQPushConsumer bad = Clients.push(words[1], "bad-" + words[2]);
        bad.subscribe(words[2], MessageSelector.bySql("a is is 3 (("));
        bad.registerMessageListener(into(found));
        try {
            bad.start();
            throw new AssertionError("bad SQL is taken");
        } catch (MQClientException expected) {
            bad.shutdown();
        }
        return String.join(",", bodies(found));
    }

    /** Per queue in order, with one listener that suspends its queue for a moment. */
    static String ordered(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        for (int number = 0; number < 80; number++) {
            producer.send(Sending.message(words[2], number),
                    (queues, message, key) -> queues.get((Integer) key % queues.size()), number % 4);
        }
        producer.shutdown();
        Map<Integer, List<Integer>> seen = new ConcurrentHashMap<>();
        AtomicInteger count = new AtomicInteger();
        AtomicInteger suspended = new AtomicInteger();
        DefaultMQPushConsumer consumer = Clients.push(words[1], "ordered-" + words[2]);
        consumer.subscribe(words[2], "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            for (MessageExt message : messages) {
                int number = Integer.parseInt(new String(message.getBody()).substring(1));
                if (number == 21 && suspended.getAndIncrement() == 0) {
                    context.setSuspendCurrentQueueTimeMillis(200);
                    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                }
                seen.computeIfAbsent(message.getQueueId(), id -> new ArrayList<>()).add(number);
                count.incrementAndGet();
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        Program.await("80 messages", SECONDS, () -> count.get() >= 80);
        consumer.shutdown();
        Program.check(suspended.get() >= 2, "the suspended one came again");
        for (List<Integer> numbers : seen.values()) {
            List<Integer> sorted = new ArrayList<>(numbers);
            Collections.sort(sorted);
            Program.same(sorted, numbers, "order in a queue");
        }
        return String.valueOf(seen.size());
    }

    /** Members come and go; nothing is lost. */
    static String clustering(String[] words) throws Exception {
        fill(words[1], words[2], 1);
        String group = "cluster-" + words[2];
        Map<String, List<MessageExt>> seen = new HashMap<>();
        List<MessageExt> first = Collections.synchronizedList(new ArrayList<>());
        List<MessageExt> second = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer one = Clients.push(words[1], group);
        one.subscribe(words[2], "*");
        one.registerMessageListener(into(first));
        one.start();
        Program.await("the first one", SECONDS, () -> first.size() >= 1);
        DefaultMQPushConsumer two = Clients.push(words[1], group);
        two.subscribe(words[2], "*");
        two.registerMessageListener(into(second));
        two.start();
        DefaultMQProducer producer = Clients.producer(words[1]);
        AtomicInteger sent = new AtomicInteger(1);
        Program.await("both to be served", SECONDS, () -> {
            producer.send(Sending.message(words[2], sent.getAndIncrement()));
            return second.size() >= 5 && first.size() >= 5;
        });
        two.shutdown();
        for (int number = 0; number < 40; number++) {
            producer.send(Sending.message(words[2], sent.getAndIncrement()));
        }
        producer.shutdown();
        Program.await("everything", SECONDS, () -> {
            Set<String> all = bodies(first);
            all.addAll(bodies(second));
            return all.size() == sent.get();
        });
        one.shutdown();
        seen.put("first", first);
        return sent.get() + " sent, " + first.size() + " and " + second.size();
    }

    static String broadcasting(String[] words) throws Exception {
        fill(words[1], words[2], 1);
        List<List<MessageExt>> seen = new ArrayList<>();
        List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        for (int number = 0; number < 2; number++) {
            List<MessageExt> found = Collections.synchronizedList(new ArrayList<>());
            DefaultMQPushConsumer consumer = Clients.push(words[1], "broadcast-" + words[2]);
            Models.broadcast(consumer);
            consumer.subscribe(words[2], "*");
            consumer.registerMessageListener(into(found));
            consumer.start();
            seen.add(found);
            consumers.add(consumer);
        }
        fill(words[1], words[2], 20);
        for (List<MessageExt> found : seen) {
            Program.await("20 messages each", SECONDS, () -> bodies(found).size() == 20);
        }
        for (DefaultMQPushConsumer consumer : consumers) {
            consumer.shutdown();
        }
        return "20";
    }
}
