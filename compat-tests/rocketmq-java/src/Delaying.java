import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** What delayed messages do: levels, any time, recall, and what a server that died owes. */
final class Delaying {
    private static final String DUE = "due_at";

    private Delaying() {}

    static void register(Map<String, Program.Scenario> scenarios) {
        scenarios.put("levels", Delaying::levels);
        scenarios.put("times", Delaying::times);
        scenarios.put("too-far", Delaying::tooFar);
        scenarios.put("recall", Delaying::recall);
        scenarios.put("send-to-wait", Delaying::sendToWait);
        scenarios.put("wait-for", Delaying::waitFor);
    }

    private static Message message(String topic, String body, long due) {
        Message message = new Message(topic, "T", "key-" + body, body.getBytes());
        message.putUserProperty(DUE, Long.toString(due));
        return message;
    }

    /** What came is what was sent, without a trace of its waiting, in the queue it was sent to. */
    private static void checkDelivered(MessageExt message) {
        long due = Long.parseLong(message.getUserProperty(DUE));
        String body = new String(message.getBody());
        Program.check(message.getStoreTimestamp() >= due,
                body + " was due at " + due + " and came at " + message.getStoreTimestamp());
        Program.same("T", message.getTags(), "tags");
        Program.same("key-" + body, message.getKeys(), "keys");
        Program.same(0, message.getDelayTimeLevel(), "level");
        for (String name : List.of("REAL_TOPIC", "REAL_QID", "TIMER_DELIVER_MS", "TIMER_DELAY_MS",
                "TIMER_DELAY_SEC", "__STARTDELIVERTIME")) {
            Program.check(message.getProperty(name) == null, name + " is left");
        }
    }

    private static String inOrder(List<MessageExt> found) {
        return found.stream()
                .sorted((one, other) -> Long.compare(one.getQueueOffset(), other.getQueueOffset()))
                .map(message -> new String(message.getBody()))
                .collect(Collectors.joining(","));
    }

    /** Of each level in the order of sending, the shorter level first, all in the queue asked for. */
    static String levels(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        int queue = 0;
        for (int number = 0; number < 5; number++) {
            for (int level : new int[] {2, 1}) {
                long due = System.currentTimeMillis() + (level == 1 ? 1_000 : 5_000);
                Message message = message(words[2], level + "-" + number, due);
                message.setDelayTimeLevel(level);
                SendResult result = producer.send(message,
                        (queues, sent, wanted) -> select(queues, (int) wanted), queue);
                Program.same(queue, result.getMessageQueue().getQueueId(), "the queue asked for");
                Program.same(words[2], result.getMessageQueue().getTopic(), "the topic asked for");
            }
        }
        producer.shutdown();
        List<MessageExt> found =
                Consuming.all(words[1], words[2], "levels-" + words[2], "*", 10);
        for (MessageExt message : found) {
            checkDelivered(message);
            Program.same(queue, message.getQueueId(), "queue");
        }
        return inOrder(found);
    }

    private static MessageQueue select(List<MessageQueue> queues, int wanted) {
        return queues.stream().filter(each -> each.getQueueId() == wanted).findFirst().orElseThrow();
    }

    /** Each way of asking for a time; one that is past is due at once. */
    static String times(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        long now = System.currentTimeMillis();
        for (String[] each : new String[][] {
            {"TIMER_DELIVER_MS", Long.toString(now + 1_200), "1200"},
            {"__STARTDELIVERTIME", Long.toString(now + 900), "900"},
            {"TIMER_DELAY_MS", "600", "600"},
            {"TIMER_DELAY_SEC", "2", "2000"},
            {"TIMER_DELIVER_MS", Long.toString(now - 5_000), "0"},
        }) {
            long wait = Long.parseLong(each[2]);
            Message message = message(words[2], each[0] + wait, now + wait);
            MessageAccessor.putProperty(message, each[0], each[1]);
            producer.send(message);
        }
        producer.shutdown();
        List<MessageExt> found = Consuming.all(words[1], words[2], "times-" + words[2], "*", 5);
        found.forEach(Delaying::checkDelivered);
        return found.stream()
                .sorted((one, other) ->
                        Long.compare(one.getStoreTimestamp(), other.getStoreTimestamp()))
                .map(message -> new String(message.getBody()))
                .collect(Collectors.joining(","));
    }

    /** Further ahead than the server allows is refused, with the reason. */
    static String tooFar(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        producer.setRetryTimesWhenSendFailed(0);
        Message message = message(words[2], "never", 0);
        MessageAccessor.putProperty(message, "TIMER_DELAY_SEC", Long.toString(400L * 86_400));
        try {
            producer.send(message);
            throw new AssertionError("a delay of 400 days is taken");
        } catch (MQBrokerException refused) {
            Program.check(refused.getErrorMessage().contains("bigger than the max delay"),
                    refused.getErrorMessage());
            return String.valueOf(refused.getResponseCode());
        } finally {
            producer.shutdown();
        }
    }

    /** Of two that wait one is taken back: once, and only the other comes. By 5.5's client only. */
    static String recall(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        List<String> handles = new ArrayList<>();
        long now = System.currentTimeMillis();
        for (int number = 0; number < 2; number++) {
            long due = now + 1_500 + number * 500;
            Message message = message(words[2], "r" + number, due);
            MessageAccessor.putProperty(message, "TIMER_DELIVER_MS", Long.toString(due));
            SendResult result = producer.send(message);
            // Older clients have neither of the two methods, and compile the same sources.
            handles.add((String) SendResult.class.getMethod("getRecallHandle").invoke(result));
        }
        Program.check(takeBack(producer, words[2], handles.get(0)), "the first is taken back");
        Program.check(!takeBack(producer, words[2], handles.get(0)), "and no second time");
        List<MessageExt> found = Consuming.all(words[1], words[2], "recall-" + words[2], "*", 1);
        found.forEach(Delaying::checkDelivered);
        Program.check(!takeBack(producer, words[2], handles.get(1)), "what came is not taken back");
        producer.shutdown();
        return inOrder(found);
    }

    private static boolean takeBack(DefaultMQProducer producer, String topic, String handle)
            throws Exception {
        try {
            DefaultMQProducer.class.getMethod("recallMessage", String.class, String.class)
                    .invoke(producer, topic, handle);
            return true;
        } catch (java.lang.reflect.InvocationTargetException error) {
            Throwable cause = error.getCause();
            Program.check(cause instanceof MQBrokerException || cause instanceof MQClientException,
                    String.valueOf(cause));
            return false;
        }
    }

    /** send-to-wait NAMESRV TOPIC: by level and by time, for some seconds from now. */
    static String sendToWait(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        for (int number = 0; number < 10; number++) {
            long now = System.currentTimeMillis();
            Message byLevel = message(words[2], "level" + number, now + 5_000);
            byLevel.setDelayTimeLevel(2);
            producer.send(byLevel);
            Message byTime = message(words[2], "time" + number, now + 6_000);
            MessageAccessor.putProperty(byTime, "TIMER_DELIVER_MS", Long.toString(now + 6_000));
            producer.send(byTime);
        }
        producer.shutdown();
        return "20";
    }

    /** wait-for NAMESRV TOPIC GROUP COUNT: what comes, each once and none early. */
    static String waitFor(String[] words) throws Exception {
        int count = Integer.parseInt(words[4]);
        List<MessageExt> found = Consuming.all(words[1], words[2], words[3], "*", count);
        found.forEach(Delaying::checkDelivered);
        Set<String> bodies = Consuming.bodies(found);
        Program.same(count, bodies.size(), "each came once");
        return String.join(",", bodies);
    }
}
