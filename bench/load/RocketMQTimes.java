import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.ToLongFunction;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Delayed messages and half messages through RocketMQ's own client. Prints one line of numbers.
 *
 * <pre>
 * level    a second: messages of level 1            median, p99 and least of how late they come, ms
 * timer    a second: messages, each for its time    the same
 * waiting  how many: messages for an hour from now  how many a second
 * paced    a second: ordinary sends                 median and p99 of a send, ms
 * half     clients: half messages and commits       how many a second, median and p99 of one, ms
 * </pre>
 *
 * <p>What comes late is counted after as much again as a third of it has warmed everything up.
 */
public final class RocketMQTimes {
    private static final int SIZE = 100;
    private static final int HALF_SIZE = 1024;
    private static final int IN_FLIGHT = 500;
    private static final long LEVEL_MS = 1_000;
    private static final long HOUR_MS = 3_600_000;
    private static final long SETTLE_MS = 2_000;
    private static final String DUE = "bench_due";

    public static void main(String[] words) {
        String namesrv = words[0];
        String topic = words[2];
        double seconds = Double.parseDouble(words[3]);
        int number = Integer.parseInt(words[4]);
        try {
            switch (words[1]) {
                case "level" -> level(namesrv, topic, seconds, number);
                case "timer" -> timer(namesrv, topic, seconds, number);
                case "waiting" -> waiting(namesrv, topic, number);
                case "paced" -> paced(namesrv, topic, seconds, number);
                case "half" -> half(namesrv, topic, seconds, number);
                default -> throw new IllegalArgumentException(words[1]);
            }
        } catch (Exception error) {
            // The client's threads would keep the process alive.
            fail(error);
        }
        System.exit(0);
    }

    private static void tell(double... numbers) {
        StringBuilder line = new StringBuilder("@@");
        for (double number : numbers) {
            line.append(String.format(Locale.ROOT, " %.3f", number));
        }
        System.out.println(line);
    }

    private static void fail(Throwable error) {
        error.printStackTrace();
        System.exit(1);
    }

    private static DefaultMQProducer producer(String namesrv) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("times");
        producer.setNamesrvAddr(namesrv);
        producer.setSendMsgTimeout(30_000);
        producer.setMqClientApiTimeout(30_000);
        producer.start();
        return producer;
    }

    private static double at(long[] sorted, double part) {
        return sorted[(int) Math.min(sorted.length - 1, sorted.length * part)];
    }

    // Coming late

    /** What a consumer saw of messages whose due time is known: how late each was, in ms. */
    private static final class Lateness {
        private final long[] late;
        private final AtomicInteger seen = new AtomicInteger();
        private final CountDownLatch done = new CountDownLatch(1);
        private final DefaultMQPushConsumer consumer;

        Lateness(String namesrv, String topic, int count, ToLongFunction<MessageExt> due)
                throws Exception {
            late = new long[count];
            consumer = new DefaultMQPushConsumer("times" + System.nanoTime());
            consumer.setNamesrvAddr(namesrv);
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.setConsumeMessageBatchMaxSize(32);
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                long now = System.currentTimeMillis();
                for (MessageExt message : messages) {
                    if (message.getUserProperty(DUE) == null) {
                        continue;
                    }
                    int index = seen.getAndIncrement();
                    if (index < count) {
                        late[index] = now - due.applyAsLong(message);
                    }
                    if (index == count - 1) {
                        done.countDown();
                    }
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
        }

        void finish(long milliseconds) throws Exception {
            if (!done.await(milliseconds, TimeUnit.MILLISECONDS)) {
                throw new IllegalStateException("only " + seen.get() + " of " + late.length);
            }
            // What comes twice comes soon after, or as a retry that is not waited for.
            Thread.sleep(500);
            if (seen.get() != late.length) {
                throw new IllegalStateException(seen.get() + " came for " + late.length);
            }
            Arrays.sort(late);
            tell(at(late, 0.5), at(late, 0.99), late[0]);
            consumer.shutdown();
        }
    }

    /** Sends at a rate, one after the other. */
    private static void level(String namesrv, String topic, double seconds, int rate)
            throws Exception {
        DefaultMQProducer producer = producer(namesrv);
        producer.send(new Message(topic, new byte[SIZE]));
        int count = (int) (seconds * rate);
        Lateness lateness = new Lateness(
                namesrv, topic, count, message -> message.getBornTimestamp() + LEVEL_MS);
        Thread.sleep(SETTLE_MS);
        long begin = System.nanoTime();
        int warm = count / 3;
        for (int number = 0; number < warm + count; number++) {
            Message message = new Message(topic, new byte[SIZE]);
            message.setDelayTimeLevel(1);
            if (number >= warm) {
                message.putUserProperty(DUE, "level");
            }
            sent(producer.send(message));
            until(begin + (long) ((number + 1) * 1e9 / rate));
        }
        lateness.finish(60_000);
        producer.shutdown();
    }

    /** Sends all of them first, as fast as it goes, each for its own millisecond. */
    private static void timer(String namesrv, String topic, double seconds, int rate)
            throws Exception {
        DefaultMQProducer producer = producer(namesrv);
        producer.send(new Message(topic, new byte[SIZE]));
        int count = (int) (seconds * rate);
        Lateness lateness = new Lateness(
                namesrv, topic, count, message -> Long.parseLong(message.getUserProperty(DUE)));
        Thread.sleep(SETTLE_MS);
        // RocketMQ takes about ten thousand a second here; three times that time is enough.
        int warm = count / 3;
        long first = System.currentTimeMillis() + SETTLE_MS + (warm + count) * 3L / 10;
        Async async = new Async(producer);
        for (int number = 0; number < warm + count; number++) {
            long due = first + number * 1_000L / rate;
            Message message = new Message(topic, new byte[SIZE]);
            message.setDeliverTimeMs(due);
            if (number >= warm) {
                message.putUserProperty(DUE, Long.toString(due));
            }
            async.send(message);
        }
        async.finish();
        if (System.currentTimeMillis() >= first) {
            throw new IllegalStateException("the first were due before the last were sent");
        }
        lateness.finish(first - System.currentTimeMillis() + (long) (seconds * 2_000) + 60_000);
        producer.shutdown();
    }

    /** Sends without waiting for each answer, and stops the program when one is a refusal. */
    private static final class Async implements SendCallback {
        private final DefaultMQProducer producer;
        private final Semaphore room = new Semaphore(IN_FLIGHT);

        Async(DefaultMQProducer producer) {
            this.producer = producer;
        }

        void send(Message message) throws Exception {
            room.acquire();
            producer.send(message, this);
        }

        void finish() throws Exception {
            if (!room.tryAcquire(IN_FLIGHT, 60, TimeUnit.SECONDS)) {
                throw new IllegalStateException("answers are missing");
            }
        }

        @Override
        public void onSuccess(SendResult result) {
            sent(result);
            room.release();
        }

        @Override
        public void onException(Throwable error) {
            fail(error);
        }
    }

    private static void waiting(String namesrv, String topic, int count) throws Exception {
        DefaultMQProducer producer = producer(namesrv);
        producer.send(new Message(topic, new byte[SIZE]));
        Async async = new Async(producer);
        long begin = System.nanoTime();
        long due = System.currentTimeMillis() + HOUR_MS;
        for (int number = 0; number < count; number++) {
            Message message = new Message(topic, new byte[SIZE]);
            message.setDeliverTimeMs(due + number);
            async.send(message);
        }
        async.finish();
        tell(count / ((System.nanoTime() - begin) / 1e9));
        producer.shutdown();
    }

    // Sending

    private static void sent(SendResult result) {
        if (result.getSendStatus() != SendStatus.SEND_OK) {
            fail(new IllegalStateException(result.toString()));
        }
    }

    private static void until(long nanoTime) throws Exception {
        long left = nanoTime - System.nanoTime();
        if (left > 0) {
            TimeUnit.NANOSECONDS.sleep(left);
        }
    }

    /** A send that begins late because the one before it took long counts from when it was due. */
    private static void paced(String namesrv, String topic, double seconds, int rate)
            throws Exception {
        DefaultMQProducer producer = producer(namesrv);
        producer.send(new Message(topic, new byte[SIZE]));
        int count = (int) (seconds * rate);
        long[] taken = new long[count];
        long begin = System.nanoTime();
        for (int number = 0; number < count; number++) {
            long due = begin + (long) (number * 1e9 / rate);
            until(due);
            sent(producer.send(new Message(topic, new byte[SIZE])));
            taken[number] = System.nanoTime() - due;
        }
        // The first tenth warms the client up.
        long[] counted = Arrays.copyOfRange(taken, count / 10, count);
        Arrays.sort(counted);
        tell(at(counted, 0.5) / 1e6, at(counted, 0.99) / 1e6);
        producer.shutdown();
    }

    /** Each client has its own producer and group; a third of the time warms up. */
    private static void half(String namesrv, String topic, double seconds, int clients)
            throws Exception {
        TransactionListener commits = new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        };
        List<TransactionMQProducer> producers = new ArrayList<>();
        for (int number = 0; number < clients; number++) {
            TransactionMQProducer producer = new TransactionMQProducer("times-half-" + number);
            producer.setInstanceName("half-" + number);
            producer.setNamesrvAddr(namesrv);
            producer.setSendMsgTimeout(30_000);
            producer.setMqClientApiTimeout(30_000);
            producer.setTransactionListener(commits);
            producer.start();
            producer.sendMessageInTransaction(new Message(topic, new byte[HALF_SIZE]), null);
            producers.add(producer);
        }
        long begin = System.nanoTime() + (long) (seconds / 3 * 1e9);
        long end = begin + (long) (seconds * 1e9);
        AtomicLong count = new AtomicLong();
        long[][] times = new long[clients][];
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < clients; number++) {
            int mine = number;
            Thread thread = new Thread(() -> {
                long[] taken = new long[1 << 20];
                int done = 0;
                try {
                    for (long now = System.nanoTime(); now < end; ) {
                        Message message = new Message(topic, new byte[HALF_SIZE]);
                        sent(producers.get(mine).sendMessageInTransaction(message, null));
                        long after = System.nanoTime();
                        if (now >= begin && done < taken.length) {
                            taken[done++] = after - now;
                        }
                        now = after;
                    }
                } catch (Exception error) {
                    fail(error);
                }
                count.addAndGet(done);
                times[mine] = Arrays.copyOf(taken, done);
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        long[] all = Arrays.stream(times).flatMapToLong(Arrays::stream).sorted().toArray();
        tell(count.get() / seconds, at(all, 0.5) / 1e6, at(all, 0.99) / 1e6);
        for (TransactionMQProducer producer : producers) {
            producer.shutdown();
        }
    }
}
