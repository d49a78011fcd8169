import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** What becomes of messages that listeners fail. */
@SuppressWarnings("deprecation")
final class Retrying {
    private static final long SECONDS = 60;

    private Retrying() {}

    static void register(Map<String, Program.Scenario> scenarios) {
        scenarios.put("fail-one", Retrying::failOne);
        scenarios.put("fail-lost", Retrying::failLost);
        scenarios.put("fail-ordered", Retrying::failOrdered);
        scenarios.put("fail-broadcast", Retrying::failBroadcast);
    }

    /** How often each body came, and with which counts. */
    static final class Seen {
        final Map<String, List<Integer>> times = new ConcurrentHashMap<>();
        final Map<String, String> topics = new ConcurrentHashMap<>();

        void note(MessageExt message) {
            String body = new String(message.getBody());
            times.computeIfAbsent(body, key -> Collections.synchronizedList(new ArrayList<>()))
                    .add(message.getReconsumeTimes());
            topics.put(body, message.getTopic());
        }
    }

    /** fail-one NAMESRV TOPIC GROUP COUNT BODY: fails one body each time; its dead letter's id and ids. */
    static String failOne(String[] words) throws Exception {
        int count = Integer.parseInt(words[4]);
        String failing = words[5];
        Seen seen = new Seen();
        DefaultMQPushConsumer consumer = Clients.push(words[1], words[3]);
        consumer.setMaxReconsumeTimes(2);
        consumer.subscribe(words[2], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(seen::note);
            return new String(messages.get(0).getBody()).equals(failing)
                    ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        MessageExt dead = buried(words[1], words[3]);
        Program.await("all of them", SECONDS, () -> seen.times.size() == count);
        Program.same(List.of(0, 1, 2), seen.times.get(failing), "the failing one comes three times");
        Program.same(words[2], seen.topics.get(failing), "and shows its own topic");
        for (Map.Entry<String, List<Integer>> each : seen.times.entrySet()) {
            Program.check(each.getKey().equals(failing) || each.getValue().equals(List.of(0)),
                    each.getKey() + " came " + each.getValue());
        }
        consumer.shutdown();
        Program.same(failing, new String(dead.getBody()), "the dead letter");
        Program.same(3, dead.getReconsumeTimes(), "its count");
        DefaultMQProducer looking = Clients.producer(words[1]);
        String topic = "%DLQ%" + words[3];
        MessageExt viewed = looking.viewMessage(topic, dead.getMsgId());
        Program.same(failing, new String(viewed.getBody()), "looked up by its id");
        Program.same(topic, viewed.getTopic(), "its topic");
        MessageExt original = looking.viewMessage(words[2], dead.getProperty("ORIGIN_MESSAGE_ID"));
        Program.same(failing, new String(original.getBody()), "the original");
        Program.same(words[2], original.getTopic(), "the original's topic");
        looking.shutdown();
        return dead.getKeys() + " " + dead.getProperty("RETRY_TOPIC") + " " + dead.getProperty("color");
    }

    /** The first dead letter of a group, once it is there. */
    static MessageExt buried(String namesrv, String group) throws Exception {
        return Consuming.all(namesrv, "%DLQ%" + group, "dead-" + group, "*", 1).get(0);
    }

    /** A listener that loses the message's place: the client cannot give it back, and sends it itself. */
    static String failLost(String[] words) throws Exception {
        Consuming.fill(words[1], words[2], 3);
        String group = "lost-" + words[2];
        Seen seen = new Seen();
        DefaultMQPushConsumer consumer = Clients.push(words[1], group);
        consumer.setMaxReconsumeTimes(2);
        consumer.subscribe(words[2], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(seen::note);
            MessageExt message = messages.get(0);
            if (!"key-1".equals(message.getKeys())) {
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            }
            message.setCommitLogOffset(1L << 43);
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        consumer.start();
        MessageExt dead = buried(words[1], group);
        consumer.shutdown();
        Program.same(List.of(0, 1, 2), seen.times.get("m1"), "it came three times");
        Program.same("m1", new String(dead.getBody()), "the dead letter");
        Program.same(3, dead.getReconsumeTimes(), "its count");
        return dead.getProperty("RETRY_TOPIC").equals(words[2]) ? "key-1" : "elsewhere";
    }

    /** In order: tried again in place, then given up, and the queue goes on. */
    static String failOrdered(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        for (int number = 0; number < 10; number++) {
            producer.send(Sending.message(words[2], number), (queues, message, key) -> queues.get(0), 0);
        }
        producer.shutdown();
        String group = "failordered-" + words[2];
        List<String> order = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = Clients.push(words[1], group);
        consumer.setMaxReconsumeTimes(2);
        consumer.setSuspendCurrentQueueTimeMillis(50);
        consumer.subscribe(words[2], "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            String body = new String(messages.get(0).getBody());
            order.add(body);
            return body.equals("m4")
                    ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        Program.await("the last one", SECONDS, () -> order.contains("m9"));
        MessageExt dead = buried(words[1], group);
        consumer.shutdown();
        Program.same("m4", new String(dead.getBody()), "the dead letter");
        Program.same(words[2], dead.getProperty("RETRY_TOPIC"), "where it was");
        return order.stream().map(body -> body.substring(1)).collect(Collectors.joining());
    }

    /** Broadcasting: what fails is gone. */
    static String failBroadcast(String[] words) throws Exception {
        Consuming.fill(words[1], words[2], 1);
        String group = "failbroadcast-" + words[2];
        AtomicInteger count = new AtomicInteger();
        DefaultMQPushConsumer consumer = Clients.push(words[1], group);
        Models.broadcast(consumer);
        consumer.subscribe(words[2], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            count.addAndGet(messages.size());
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        consumer.start();
        AtomicInteger sent = new AtomicInteger(1);
        DefaultMQProducer producer = Clients.producer(words[1]);
        Program.await("a few of them", SECONDS, () -> {
            producer.send(Sending.message(words[2], sent.getAndIncrement()));
            return count.get() >= 5;
        });
        producer.shutdown();
        consumer.shutdown();
        Program.check(count.get() <= sent.get(), "each once");
        DefaultMQPullConsumer looking = new DefaultMQPullConsumer("looking-" + words[2], Clients.hook());
        looking.setNamesrvAddr(words[1]);
        looking.setInstanceName(Clients.instance());
        looking.start();
        long ends = 0;
        for (MessageQueue queue : looking.fetchSubscribeMessageQueues("%RETRY%" + group)) {
            ends += looking.maxOffset(queue);
        }
        looking.shutdown();
        return ends + " retries";
    }
}
