import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.MessageExt;

/** What push consumers do whose queues the broker allocates, and who pop if it says so. */
final class Popping {
    private static final long SECONDS = 90;

    private Popping() {}

    static void register(Map<String, Program.Scenario> scenarios) {
        scenarios.put("pop", Popping::pop);
        scenarios.put("pop-shared", Popping::shared);
        scenarios.put("pop-fail", Popping::fail);
        scenarios.put("pop-ordered", Popping::ordered);
    }

    /** A consumer that leaves its queues to the broker; the setting came with 5.0. */
    static DefaultMQPushConsumer consumer(String namesrv, String group) throws Exception {
        DefaultMQPushConsumer consumer = Clients.push(namesrv, group);
        DefaultMQPushConsumer.class.getMethod("setClientRebalance", boolean.class).invoke(consumer, false);
        return consumer;
    }

    /** pop NAMESRV TOPIC GROUP COUNT: how many came, and of how many queues each handle was. */
    static String pop(String[] words) throws Exception {
        int count = Integer.parseInt(words[4]);
        List<MessageExt> found = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = consumer(words[1], words[3]);
        consumer.subscribe(words[2], "*");
        consumer.registerMessageListener(Consuming.into(found));
        consumer.start();
        Program.await(count + " messages", SECONDS, () -> found.size() >= count);
        consumer.shutdown();
        Program.same(count, Consuming.bodies(found).size(), "every message once");
        for (MessageExt message : found) {
            Program.check(message.getProperty("POP_CK") != null, "a handle with each");
        }
        return String.valueOf(found.size());
    }

    /** pop-shared NAMESRV TOPIC GROUP COUNT: two members share every queue. */
    static String shared(String[] words) throws Exception {
        int count = Integer.parseInt(words[4]);
        List<MessageExt> first = Collections.synchronizedList(new ArrayList<>());
        List<MessageExt> second = Collections.synchronizedList(new ArrayList<>());
        List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        for (List<MessageExt> found : List.of(first, second)) {
            DefaultMQPushConsumer consumer = consumer(words[1], words[3]);
            consumer.subscribe(words[2], "*");
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                found.addAll(messages);
                try {
                    Thread.sleep(20);
                } catch (InterruptedException stopped) {
                    Thread.currentThread().interrupt();
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
            consumers.add(consumer);
        }
        Consuming.fill(words[1], words[2], count);
        Program.await(count + " messages", SECONDS, () -> first.size() + second.size() >= count);
        consumers.forEach(DefaultMQPushConsumer::shutdown);
        List<MessageExt> all = new ArrayList<>(first);
        all.addAll(second);
        Program.same(count, Consuming.bodies(all).size(), "every message once");
        Program.check(!first.isEmpty() && !second.isEmpty(), "both have a part");
        return String.valueOf(all.size());
    }

    /** pop-fail NAMESRV TOPIC GROUP: each message fails once; its tries, with commas between. */
    static String fail(String[] words) throws Exception {
        Map<String, List<Integer>> tries = new ConcurrentHashMap<>();
        DefaultMQPushConsumer consumer = consumer(words[1], words[3]);
        consumer.subscribe(words[2], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                Program.same(words[2], message.getTopic(), "the topic that was subscribed");
                tries.computeIfAbsent(new String(message.getBody()),
                        body -> Collections.synchronizedList(new ArrayList<>())).add(message.getReconsumeTimes());
                if (message.getReconsumeTimes() == 0) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Program.await("6 messages twice", SECONDS,
                () -> tries.values().stream().mapToInt(List::size).sum() >= 12);
        consumer.shutdown();
        return new TreeMap<>(tries).values().stream().map(List::toString).distinct()
                .collect(Collectors.joining(","));
    }

    /** pop-ordered NAMESRV TOPIC GROUP COUNT: what was read of each queue, in order. */
    static String ordered(String[] words) throws Exception {
        int count = Integer.parseInt(words[4]);
        Map<Integer, List<Long>> seen = new ConcurrentHashMap<>();
        DefaultMQPushConsumer consumer = consumer(words[1], words[3]);
        consumer.subscribe(words[2], "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            for (MessageExt message : messages) {
                seen.computeIfAbsent(message.getQueueId(),
                        id -> Collections.synchronizedList(new ArrayList<>())).add(message.getQueueOffset());
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        Program.await(count + " messages", SECONDS,
                () -> seen.values().stream().mapToInt(List::size).sum() >= count);
        consumer.shutdown();
        for (List<Long> offsets : seen.values()) {
            List<Long> sorted = new ArrayList<>(offsets);
            Collections.sort(sorted);
            Program.same(sorted, offsets, "in the order of the queue");
        }
        return String.valueOf(seen.values().stream().mapToInt(List::size).sum());
    }
}
