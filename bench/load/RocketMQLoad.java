import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.MessageQueueSelector;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/** Load through RocketMQ's own client. Prints one line: operations a second, median microseconds. */
public final class RocketMQLoad {
    private static final int SIZE = 1024;

    public static void main(String[] words) throws Exception {
        String namesrv = words[0];
        String topic = words[2];
        double seconds = Double.parseDouble(words[3]);
        int number = Integer.parseInt(words[4]);
        switch (words[1]) {
            case "sync" -> sync(namesrv, topic, seconds, number);
            case "async" -> async(namesrv, topic, seconds, number);
            case "batch" -> batch(namesrv, topic, seconds, number);
            case "fill" -> fill(namesrv, topic, number);
            case "fill-queue" -> fillQueue(namesrv, topic, number);
            case "consume" -> consume(namesrv, topic, number);
            default -> throw new IllegalArgumentException(words[1]);
        }
        System.exit(0);
    }

    private static DefaultMQProducer producer(String namesrv) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("load");
        producer.setNamesrvAddr(namesrv);
        producer.setSendMsgTimeout(30_000);
        producer.setMqClientApiTimeout(30_000);
        producer.start();
        return producer;
    }

    private static void tell(long count, double seconds, double micros) {
        System.out.printf("@@ %.1f %.1f%n", count / seconds, micros);
    }

    /** Warm up for a third of the time, then count. */
    private static void sync(String namesrv, String topic, double seconds, int threads)
            throws Exception {
        DefaultMQProducer producer = producer(namesrv);
        producer.send(new Message(topic, new byte[SIZE]));
        long begin = System.nanoTime() + (long) (seconds / 3 * 1e9);
        long end = begin + (long) (seconds * 1e9);
        List<Thread> started = new ArrayList<>();
        long[][] times = new long[threads][];
        AtomicLong count = new AtomicLong();
        for (int number = 0; number < threads; number++) {
            int mine = number;
            Thread thread = new Thread(() -> {
                long[] taken = new long[1 << 20];
                int done = 0;
                try {
                    for (long now = System.nanoTime(); now < end; ) {
                        SendResult result = producer.send(new Message(topic, new byte[SIZE]));
                        if (result.getSendStatus() != SendStatus.SEND_OK) {
                            throw new IllegalStateException(result.toString());
                        }
                        long after = System.nanoTime();
                        if (now >= begin && done < taken.length) {
                            taken[done++] = after - now;
                        }
                        now = after;
                    }
                } catch (Exception error) {
                    error.printStackTrace();
                    System.exit(1);
                }
                count.addAndGet(done);
                times[mine] = Arrays.copyOf(taken, done);
            });
            thread.start();
            started.add(thread);
        }
        for (Thread thread : started) {
            thread.join();
        }
        long[] all = Arrays.stream(times).flatMapToLong(Arrays::stream).sorted().toArray();
        tell(count.get(), seconds, all[all.length / 2] / 1e3);
        producer.shutdown();
    }

    private static void async(String namesrv, String topic, double seconds, int inFlight)
            throws Exception {
        DefaultMQProducer producer = producer(namesrv);
        producer.send(new Message(topic, new byte[SIZE]));
        Semaphore room = new Semaphore(inFlight);
        AtomicLong count = new AtomicLong();
        AtomicBoolean isCounting = new AtomicBoolean();
        long begin = System.nanoTime() + (long) (seconds / 3 * 1e9);
        long end = begin + (long) (seconds * 1e9);
        SendCallback callback = new SendCallback() {
            @Override
            public void onSuccess(SendResult result) {
                if (isCounting.get()) {
                    count.incrementAndGet();
                }
                room.release();
            }

            @Override
            public void onException(Throwable error) {
                error.printStackTrace();
                System.exit(1);
            }
        };
        for (long now = System.nanoTime(); now < end; now = System.nanoTime()) {
            if (now >= begin) {
                isCounting.set(true);
            }
            room.acquire();
            producer.send(new Message(topic, new byte[SIZE]), callback);
        }
        long counted = count.get();
        tell(counted, seconds, 0);
        room.tryAcquire(inFlight, 20, TimeUnit.SECONDS);
        producer.shutdown();
    }

    private static void batch(String namesrv, String topic, double seconds, int size)
            throws Exception {
        DefaultMQProducer producer = producer(namesrv);
        producer.send(new Message(topic, new byte[SIZE]));
        long begin = System.nanoTime() + (long) (seconds / 3 * 1e9);
        long end = begin + (long) (seconds * 1e9);
        long count = 0;
        for (long now = System.nanoTime(); now < end; now = System.nanoTime()) {
            List<Message> messages = new ArrayList<>();
            for (int number = 0; number < size; number++) {
                messages.add(new Message(topic, new byte[SIZE]));
            }
            producer.send(messages);
            if (now >= begin) {
                count += size;
            }
        }
        tell(count, seconds, 0);
        producer.shutdown();
    }

    private static void fill(String namesrv, String topic, int count) throws Exception {
        DefaultMQProducer producer = producer(namesrv);
        for (int sent = 0; sent < count; sent += 100) {
            List<Message> messages = new ArrayList<>();
            for (int number = 0; number < 100; number++) {
                messages.add(new Message(topic, new byte[SIZE]));
            }
            producer.send(messages);
        }
        tell(count, 1, 0);
        producer.shutdown();
    }

    /** Everything into the first queue. */
    private static void fillQueue(String namesrv, String topic, int count) throws Exception {
        DefaultMQProducer producer = producer(namesrv);
        MessageQueueSelector isFirst = (queues, message, none) ->
                queues.stream().filter(queue -> queue.getQueueId() == 0).findFirst().get();
        Message creating = new Message(topic, new byte[SIZE]);
        MessageQueue first = producer.send(creating, isFirst, null).getMessageQueue();
        for (int sent = 0; sent < count; sent += 100) {
            List<Message> messages = new ArrayList<>();
            for (int number = 0; number < 100; number++) {
                messages.add(new Message(topic, new byte[SIZE]));
            }
            producer.send(messages, first);
        }
        tell(count, 1, 0);
        producer.shutdown();
    }

    /** Counts from the first message on, so that finding queues is not timed. */
    private static void consume(String namesrv, String topic, int count) throws Exception {
        DefaultMQPushConsumer consumer =
                new DefaultMQPushConsumer("load" + System.nanoTime());
        consumer.setNamesrvAddr(namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeMessageBatchMaxSize(32);
        consumer.subscribe(topic, "*");
        AtomicLong seen = new AtomicLong();
        AtomicLong first = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);
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
        tell(seen.get(), (System.nanoTime() - first.get()) / 1e9, 0);
        consumer.shutdown();
    }
}
