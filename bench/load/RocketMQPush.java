import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/** RocketMQ's push consumer: how many a second, and how late at a steady rate. */
public final class RocketMQPush {
    private static final int BATCH = 32;
    private static final SendCallback IGNORED = new SendCallback() {
        @Override
        public void onSuccess(SendResult result) {}

        @Override
        public void onException(Throwable failed) {
            System.err.println(failed);
        }
    };

    public static void main(String[] words) throws Exception {
        switch (words[1]) {
            case "consume" -> consume(words[0], words[2], Integer.parseInt(words[3]));
            case "latency" -> latency(
                    words[0], words[2], Double.parseDouble(words[3]), Integer.parseInt(words[4]));
            default -> throw new IllegalArgumentException(words[1]);
        }
        System.exit(0);
    }

    private static DefaultMQPushConsumer consumer(String namesrv, String topic) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("push" + System.nanoTime());
        consumer.setNamesrvAddr(namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeMessageBatchMaxSize(BATCH);
        consumer.subscribe(topic, "*");
        return consumer;
    }

    /** Counts from the first message on, so that finding queues is not timed. */
    private static void consume(String namesrv, String topic, int count) throws Exception {
        AtomicLong seen = new AtomicLong();
        AtomicLong first = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = consumer(namesrv, topic);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            first.compareAndSet(0, System.nanoTime());
            if (seen.addAndGet(messages.size()) >= count) {
                done.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        if (!done.await(120, TimeUnit.SECONDS)) {
            System.err.println("only " + seen.get());
            System.exit(1);
        }
        System.out.printf("@@ %.1f%n", seen.get() / ((System.nanoTime() - first.get()) / 1e9));
        consumer.shutdown();
    }

    /** Sends at a rate for so long, the first third unmeasured, and tells p50 and p99 in us. */
    private static void latency(String namesrv, String topic, double seconds, int rate)
            throws Exception {
        int count = (int) (seconds * rate);
        long[] tookNanos = new long[count];
        AtomicInteger at = new AtomicInteger();
        AtomicInteger seen = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(1);
        DefaultMQProducer producer = new DefaultMQProducer("push");
        producer.setNamesrvAddr(namesrv);
        producer.start();
        producer.send(new Message(topic, new byte[16]));
        DefaultMQPushConsumer consumer = consumer(namesrv, topic);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> {
                ByteBuffer body = ByteBuffer.wrap(message.getBody());
                int number = (int) body.getLong();
                if (number == 0) {
                    return;
                }
                long sent = body.getLong();
                if (number > count / 3) {
                    tookNanos[at.getAndIncrement()] = System.nanoTime() - sent;
                }
                if (seen.incrementAndGet() == count) {
                    done.countDown();
                }
            });
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        long begin = System.nanoTime();
        for (int number = 1; number <= count; number++) {
            long due = begin + (long) (number * 1e9 / rate);
            while (System.nanoTime() < due) {
                Thread.sleep(0, 200_000);
            }
            byte[] body =
                    ByteBuffer.allocate(100).putLong(number).putLong(System.nanoTime()).array();
            producer.send(new Message(topic, body), IGNORED);
        }
        if (!done.await(60, TimeUnit.SECONDS)) {
            System.err.println("only " + seen.get());
            System.exit(1);
        }
        long[] sorted = Arrays.copyOf(tookNanos, at.get());
        Arrays.sort(sorted);
        System.out.printf("@@ %.1f %.1f%n",
                sorted[sorted.length / 2] / 1e3, sorted[sorted.length * 99 / 100] / 1e3);
        consumer.shutdown();
        producer.shutdown();
    }
}
