import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** What producers do. Arguments: scenario, name server, topic, and what a scenario adds. */
final class Sending {
    private Sending() {}

    static void register(Map<String, Program.Scenario> scenarios) {
        scenarios.put("produce", Sending::produce);
        scenarios.put("sync", Sending::sync);
        scenarios.put("async", Sending::async);
        scenarios.put("oneway", Sending::oneway);
        scenarios.put("batch", Sending::batch);
        scenarios.put("large", Sending::large);
        scenarios.put("refused", Sending::refused);
        scenarios.put("query", Sending::query);
        scenarios.put("reply", Sending::reply);
    }

    static Message message(String topic, int number) {
        Message message = new Message(topic, "Tag" + (char) ('A' + number % 3), "key-" + number,
                ("m" + number).getBytes());
        message.putUserProperty("a", String.valueOf(number));
        message.putUserProperty("color", number % 2 == 0 ? "blue" : "red");
        return message;
    }

    /** produce NAMESRV TOPIC FIRST COUNT: nothing but sends. */
    static String produce(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        int first = Integer.parseInt(words[3]);
        for (int number = first; number < first + Integer.parseInt(words[4]); number++) {
            SendResult result = producer.send(message(words[2], number));
            Program.same(SendStatus.SEND_OK, result.getSendStatus(), "status");
        }
        producer.shutdown();
        return words[4];
    }

    static String sync(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        Set<String> ids = new HashSet<>();
        for (int number = 0; number < 40; number++) {
            SendResult result = producer.send(message(words[2], number));
            Program.same(SendStatus.SEND_OK, result.getSendStatus(), "status");
            Program.check(result.getQueueOffset() >= 0, "an offset");
            Program.check(ids.add(result.getMsgId()), "ids differ");
            Program.check(ids.add(result.getOffsetMsgId()), "offset ids differ");
        }
        Program.check(producer.fetchPublishMessageQueues(words[2]).size() == 4, "four queues");
        producer.shutdown();
        List<MessageExt> found = Consuming.all(words[1], words[2], "sync-" + words[2], "*", 40);
        for (MessageExt message : found) {
            int number = Integer.parseInt(new String(message.getBody()).substring(1));
            Program.same("key-" + number, message.getKeys(), "keys");
            Program.same("Tag" + (char) ('A' + number % 3), message.getTags(), "tags");
            Program.same(String.valueOf(number), message.getUserProperty("a"), "property");
            Program.check(ids.contains(message.getMsgId()), "the id of a send");
            for (String name : message.getProperties().keySet()) {
                Program.check(!name.contains("ECRC"), "no property of the server's own: " + name);
            }
        }
        return String.valueOf(found.size());
    }

    static String async(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        producer.send(message(words[2], 0));
        CountDownLatch left = new CountDownLatch(200);
        AtomicReference<Throwable> failed = new AtomicReference<>();
        for (int number = 1; number <= 200; number++) {
            producer.send(message(words[2], number), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    left.countDown();
                }

                @Override
                public void onException(Throwable error) {
                    failed.set(error);
                    left.countDown();
                }
            });
        }
        Program.check(left.await(30, TimeUnit.SECONDS), "all answers");
        Program.check(failed.get() == null, "no failure: " + failed.get());
        producer.shutdown();
        return String.valueOf(Consuming.all(words[1], words[2], "async-" + words[2], "*", 201).size());
    }

    static String oneway(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        producer.send(message(words[2], 0));
        for (int number = 1; number <= 30; number++) {
            producer.sendOneway(message(words[2], number));
        }
        int found = Consuming.all(words[1], words[2], "oneway-" + words[2], "*", 31).size();
        producer.shutdown();
        return String.valueOf(found);
    }

    static String batch(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        producer.send(message(words[2], 0));
        List<Message> messages = new ArrayList<>();
        for (int number = 1; number <= 20; number++) {
            messages.add(message(words[2], number));
        }
        SendResult result = producer.send(messages);
        Program.same(SendStatus.SEND_OK, result.getSendStatus(), "status");
        Program.same(20, result.getOffsetMsgId().split(",").length, "an id for each");
        producer.shutdown();
        return String.valueOf(Consuming.all(words[1], words[2], "batch-" + words[2], "*", 21).size());
    }

    /** A body over 4 KiB travels compressed, and comes out as it went in. */
    static String large(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        byte[] body = new byte[1_000_000];
        for (int at = 0; at < body.length; at++) {
            body[at] = (byte) (at % 97);
        }
        producer.send(new Message(words[2], body));
        producer.shutdown();
        MessageExt found = Consuming.all(words[1], words[2], "large-" + words[2], "*", 1).get(0);
        Program.check(java.util.Arrays.equals(body, found.getBody()), "the same body");
        return String.valueOf(found.getStoreSize());
    }

    static String refused(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        try {
            producer.send(new Message("SCHEDULE_TOPIC_XXXX", "x".getBytes()));
            throw new AssertionError("a system topic takes a message");
        } catch (org.apache.rocketmq.client.exception.MQClientException | MQBrokerException expected) {
            producer.shutdown();
            return expected.getClass().getSimpleName();
        }
    }

    static String query(String[] words) throws Exception {
        DefaultMQProducer producer = Clients.producer(words[1]);
        long before = System.currentTimeMillis() - 60_000;
        SendResult sent = null;
        for (int number = 0; number < 5; number++) {
            sent = producer.send(message(words[2], number));
        }
        MessageExt viewed = producer.viewMessage(words[2], sent.getOffsetMsgId());
        Program.same("m4", new String(viewed.getBody()), "by offset id");
        Program.same("m4", new String(producer.viewMessage(words[2], sent.getMsgId()).getBody()), "by id");
        QueryResult found = producer.queryMessage(words[2], "key-3", 10, before,
                System.currentTimeMillis() + 60_000);
        Program.same(1, found.getMessageList().size(), "by key");
        Program.same("m3", new String(found.getMessageList().get(0).getBody()), "the body");
        producer.shutdown();
        return "3";
    }

    static String reply(String[] words) throws Exception {
        DefaultMQProducer asker = Clients.producer(words[1]);
        asker.send(message(words[2], 0));
        DefaultMQProducer replier = Clients.producer(words[1]);
        DefaultMQPushConsumer consumer = Clients.push(words[1], "reply-" + words[2]);
        consumer.subscribe(words[2], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                if (message.getProperty("REPLY_TO_CLIENT") == null) {
                    continue;
                }
                try {
                    byte[] body = ("re:" + new String(message.getBody())).getBytes();
                    replier.send(MessageUtil.createReplyMessage(message, body));
                } catch (Exception error) {
                    error.printStackTrace();
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        for (int number = 0; number < 5; number++) {
            Message answer = asker.request(message(words[2], number), 15_000);
            Program.same("re:m" + number, new String(answer.getBody()), "the reply");
        }
        consumer.shutdown();
        replier.shutdown();
        asker.shutdown();
        return "5";
    }
}
