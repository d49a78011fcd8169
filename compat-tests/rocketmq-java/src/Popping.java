import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
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
        scenarios.put("pop-ordered-fail", Popping::orderedFail);
        scenarios.put("assigned", Popping::assigned);
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

    /** pop-ordered-fail NAMESRV TOPIC GROUP: one queue whose third message fails twice; the bodies in order. */
    static String orderedFail(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        for (int number = 0; number < 6; number++) {
            producer.send(Sending.message(words[2], number), (queues, message, key) -> queues.get(0), 0);
        }
        producer.shutdown();
        List<String> order = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = consumer(words[1], words[3]);
        consumer.setSuspendCurrentQueueTimeMillis(100);
        consumer.subscribe(words[2], "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            String body = new String(messages.get(0).getBody());
            order.add(body);
            return body.equals("m2") && Collections.frequency(order, "m2") < 3
                    ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        Program.await("the last one", SECONDS, () -> order.contains("m5"));
        consumer.shutdown();
        return order.stream().map(body -> body.substring(1)).collect(Collectors.joining());
    }

    /** assigned NAMESRV TOPIC GROUP COUNT: two members pull the queues that the broker gives them; how they are split. */
    static String assigned(String[] words) throws Exception {
        int count = Integer.parseInt(words[4]);
        List<MessageExt> first = Collections.synchronizedList(new ArrayList<>());
        List<MessageExt> second = Collections.synchronizedList(new ArrayList<>());
        List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        for (List<MessageExt> found : List.of(first, second)) {
            DefaultMQPushConsumer consumer = consumer(words[1], words[3]);
            consumer.subscribe(words[2], "*");
            consumer.registerMessageListener(Consuming.into(found));
            consumer.start();
            consumers.add(consumer);
        }
        Set<String> sent = new TreeSet<>();
        DefaultMQProducer producer = Clients.producer(words[1]);
        Program.await("queues of both", SECONDS, () -> {
            for (int queue = 0; queue < 4; queue++) {
                Message message = Sending.message(words[2], sent.size());
                producer.send(message, (queues, one, key) -> queues.get((Integer) key), queue);
                sent.add(new String(message.getBody()));
            }
            return queues(first).size() == 2 && queues(second).size() == 2 || sent.size() > 100 * count;
        });
        first.clear();
        second.clear();
        sent.clear();
        for (int number = 0; number < count; number++) {
            Message message = Sending.message(words[2], 1_000_000 + number);
            producer.send(message, (queues, one, key) -> queues.get((Integer) key % 4), number);
            sent.add(new String(message.getBody()));
        }
        producer.shutdown();
        Program.await("all of them", SECONDS, () -> {
            Set<String> all = Consuming.bodies(first);
            all.addAll(Consuming.bodies(second));
            return all.containsAll(sent);
        });
        consumers.forEach(DefaultMQPushConsumer::shutdown);
        Set<Integer> shared = queues(first);
        shared.retainAll(queues(second));
        Program.check(shared.isEmpty(), "no queue is read by both: " + shared);
        for (MessageExt message : first) {
            Program.check(message.getProperty("POP_CK") == null, "pulled, not popped");
        }
        return queues(first).size() + "+" + queues(second).size();
    }

    private static Set<Integer> queues(List<MessageExt> found) {
        synchronized (found) {
            return found.stream().map(MessageExt::getQueueId).collect(Collectors.toCollection(TreeSet::new));
        }
    }
}
