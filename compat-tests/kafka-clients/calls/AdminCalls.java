import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Every call of the Java Admin: each on things of its own, with what it must have done looked at afterwards. */
public final class AdminCalls implements Program.Handle {
    private final String bootstrap;
    private final Admin admin;
    private final Map<String, Callable<?>> calls = new TreeMap<>();
    private int number;

    public AdminCalls(Program.Fields fields) {
        bootstrap = fields.text("bootstrap");
        Map<String, Object> config = new TreeMap<>(Login.of(fields));
        config.putAll(Map.of("bootstrap.servers", bootstrap, "default.api.timeout.ms", 10_000, "request.timeout.ms", 5_000));
        admin = Admin.create(config);
        topics();
        records();
        groups();
        cluster();
        transactions();
        quotas();
        security();
        otherGroups();
    }

    @Override
    public Object take(String request, Program.Fields fields) throws Exception {
        switch (request) {
            case "methods":
                return Stream.of(Admin.class.getMethods()).map(each -> each.getName())
                    .filter(each -> !Set.of("close", "create").contains(each)).collect(Collectors.toCollection(TreeSet::new));
            case "call":
                return String.valueOf(calls.get(fields.text("name")).call());
            case "close":
                admin.close();
                return null;
            default:
                throw new IllegalArgumentException("no " + request);
        }
    }

    // Things to ask about

    private String fresh(String what) {
        return "calls-" + what + "-" + number++;
    }

    private String topic(int partitions) throws Exception {
        String name = fresh("topic");
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all().get();
        return name;
    }

    private String filled(int count) throws Exception {
        String name = topic(1);
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            for (int n = 0; n < count; n++) {
                producer.send(new ProducerRecord<>(name, 0, 1_000L + n, "k", "v" + n));
            }
        }
        return name;
    }

    private KafkaProducer<String, String> producer(Map<String, Object> more) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.putAll(more);
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    /** A group without members that has committed 3 in partition 0. */
    private String group(String topic) throws Exception {
        String name = fresh("group");
        admin.alterConsumerGroupOffsets(name, Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(3, "here"))).all().get();
        return name;
    }

    private KafkaConsumer<String, String> member(String group, String topic, String instance) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("group.id", group);
        config.put("group.instance.id", instance);
        config.put("auto.offset.reset", "earliest");
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(topic));
        while (consumer.assignment().isEmpty()) {
            consumer.poll(Duration.ofMillis(100));
        }
        return consumer;
    }

    private int broker() throws Exception {
        return admin.describeCluster().nodes().get().iterator().next().id();
    }

    private static TopicPartition first(String topic) {
        return new TopicPartition(topic, 0);
    }

    private static void check(boolean holds, Object seen) {
        if (!holds) {
            throw new IllegalStateException("seen: " + seen);
        }
    }

    // The calls

    private void topics() {
        calls.put("createTopics", () -> {
            String name = fresh("topic");
            CreateTopicsResult made = admin.createTopics(List.of(new NewTopic(name, 3, (short) 1).configs(Map.of("retention.ms", "5000"))));
            check(made.numPartitions(name).get() == 3, made.numPartitions(name).get());
            check(made.config(name).get().get("retention.ms").value().equals("5000"), made.config(name).get());
            return made.topicId(name).get();
        });
        calls.put("listTopics", () -> {
            String name = topic(1);
            check(admin.listTopics().names().get().contains(name), name);
            return admin.listTopics(new ListTopicsOptions().listInternal(true)).listings().get().size();
        });
        calls.put("describeTopics", () -> {
            String name = topic(2);
            TopicDescription found = admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
            check(found.partitions().size() == 2, found);
            TopicDescription again = admin.describeTopics(TopicCollection.ofTopicIds(List.of(found.topicId()))).allTopicIds().get().get(found.topicId());
            check(again.name().equals(name), again);
            return found;
        });
        calls.put("deleteTopics", () -> {
            String name = topic(1);
            Uuid id = admin.describeTopics(List.of(name)).allTopicNames().get().get(name).topicId();
            admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
            check(!admin.listTopics().names().get().contains(name), name);
            return id;
        });
        calls.put("createPartitions", () -> {
            String name = topic(1);
            admin.createPartitions(Map.of(name, NewPartitions.increaseTo(4))).all().get();
            int count = admin.describeTopics(List.of(name)).allTopicNames().get().get(name).partitions().size();
            check(count == 4, count);
            return count;
        });
        calls.put("describeConfigs", () -> {
            ConfigResource of = new ConfigResource(ConfigResource.Type.TOPIC, topic(1));
            DescribeConfigsOptions options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
            ConfigEntry found = admin.describeConfigs(List.of(of), options).all().get().get(of).get("retention.ms");
            check(found.isDefault() && found.documentation() != null && !found.synonyms().isEmpty(), found);
            ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(broker()));
            return admin.describeConfigs(List.of(broker)).all().get().get(broker).entries().size();
        });
        calls.put("incrementalAlterConfigs", () -> {
            ConfigResource of = new ConfigResource(ConfigResource.Type.TOPIC, topic(1));
            AlterConfigOp change = new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.APPEND);
            admin.incrementalAlterConfigs(Map.of(of, List.of(change))).all().get();
            String value = admin.describeConfigs(List.of(of)).all().get().get(of).get("cleanup.policy").value();
            check(Set.of("delete,compact", "compact,delete").contains(value), value);
            return value;
        });
        calls.put("listConfigResources", () -> {
            String name = topic(1);
            Collection<ConfigResource> found = admin.listConfigResources(Set.of(ConfigResource.Type.TOPIC), new ListConfigResourcesOptions()).all().get();
            check(found.contains(new ConfigResource(ConfigResource.Type.TOPIC, name)), found);
            return admin.listConfigResources().all().get().size();
        });
        calls.put("listClientMetricsResources", () -> admin.listClientMetricsResources().all().get());
    }

    private void records() {
        calls.put("listOffsets", () -> {
            String name = filled(10);
            TopicPartition place = first(name);
            check(admin.listOffsets(Map.of(place, OffsetSpec.earliest())).all().get().get(place).offset() == 0, "earliest");
            check(admin.listOffsets(Map.of(place, OffsetSpec.latest())).all().get().get(place).offset() == 10, "latest");
            check(admin.listOffsets(Map.of(place, OffsetSpec.forTimestamp(1_004))).all().get().get(place).offset() == 4, "by time");
            check(admin.listOffsets(Map.of(place, OffsetSpec.maxTimestamp())).all().get().get(place).offset() == 9, "max");
            return admin.listOffsets(Map.of(place, OffsetSpec.forTimestamp(5_000))).all().get().get(place).offset();
        });
        calls.put("deleteRecords", () -> {
            TopicPartition place = first(filled(10));
            long low = admin.deleteRecords(Map.of(place, RecordsToDelete.beforeOffset(7))).lowWatermarks().get(place).get().lowWatermark();
            check(low == 7, low);
            return low;
        });
        calls.put("describeProducers", () -> {
            TopicPartition place = first(filled(3));
            List<ProducerState> found = admin.describeProducers(List.of(place)).partitionResult(place).get().activeProducers();
            check(found.size() == 1 && found.get(0).lastSequence() == 2, found);
            return found;
        });
    }

    @SuppressWarnings("removal")
    private void groups() {
        calls.put("alterConsumerGroupOffsets", () -> group(topic(1)));
        calls.put("listConsumerGroupOffsets", () -> {
            String topic = topic(1);
            String group = group(topic);
            OffsetAndMetadata found = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(first(topic));
            check(found.offset() == 3 && found.metadata().equals("here"), found);
            return admin.listConsumerGroupOffsets(Map.of(group, new ListConsumerGroupOffsetsSpec(), fresh("none"), new ListConsumerGroupOffsetsSpec())).all().get();
        });
        calls.put("deleteConsumerGroupOffsets", () -> {
            String topic = topic(1);
            String group = group(topic);
            admin.deleteConsumerGroupOffsets(group, Set.of(first(topic))).all().get();
            Map<TopicPartition, OffsetAndMetadata> left = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
            check(left.isEmpty(), left);
            return left;
        });
        calls.put("listConsumerGroups", () -> {
            String group = group(topic(1));
            Collection<ConsumerGroupListing> found = admin.listConsumerGroups().all().get();
            check(found.stream().anyMatch(each -> each.groupId().equals(group)), found);
            return found.size();
        });
        calls.put("listGroups", () -> {
            String group = group(topic(1));
            Collection<GroupListing> found = admin.listGroups(new ListGroupsOptions().withTypes(Set.of(GroupType.CLASSIC))).all().get();
            check(found.stream().anyMatch(each -> each.groupId().equals(group)), found);
            return found.size();
        });
        calls.put("describeConsumerGroups", () -> {
            String topic = topic(2);
            String group = group(topic);
            try (KafkaConsumer<String, String> member = member(group, topic, "one")) {
                ConsumerGroupDescription found = admin.describeConsumerGroups(Set.of(group)).all().get().get(group);
                check(found.members().size() == 1 && found.members().iterator().next().assignment().topicPartitions().size() == 2, found);
                return found;
            }
        });
        calls.put("describeClassicGroups", () -> {
            String topic = topic(1);
            String group = group(topic);
            try (KafkaConsumer<String, String> member = member(group, topic, "one")) {
                ClassicGroupDescription found = admin.describeClassicGroups(Set.of(group)).all().get().get(group);
                check(found.members().size() == 1, found);
                return found;
            }
        });
        calls.put("removeMembersFromConsumerGroup", () -> {
            String topic = topic(1);
            String group = group(topic);
            try (KafkaConsumer<String, String> member = member(group, topic, "one")) {
                admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("one")))).all().get();
                int left = admin.describeConsumerGroups(Set.of(group)).all().get().get(group).members().size();
                check(left == 0, left);
                return left;
            }
        });
        calls.put("deleteConsumerGroups", () -> {
            String group = group(topic(1));
            admin.deleteConsumerGroups(Set.of(group)).all().get();
            Collection<GroupListing> left = admin.listGroups().all().get();
            check(left.stream().noneMatch(each -> each.groupId().equals(group)), left);
            return group;
        });
    }

    private void cluster() {
        calls.put("describeCluster", () -> {
            DescribeClusterResult found = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
            check(found.nodes().get().size() == 1 && found.controller().get() != null, found.clusterId().get());
            return found.clusterId().get();
        });
        calls.put("describeFeatures", () -> admin.describeFeatures().featureMetadata().get());
        calls.put("updateFeatures", () -> {
            // There is nothing to update where no feature is told of, and that is what it must say.
            FeatureUpdate update = new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE);
            try {
                admin.updateFeatures(Map.of(fresh("feature"), update), new UpdateFeaturesOptions()).all().get();
            } catch (ExecutionException refused) {
                check(refused.getCause() instanceof org.apache.kafka.common.errors.InvalidUpdateVersionException, refused);
                return refused;
            }
            throw new IllegalStateException("a feature that is not there was updated");
        });
        calls.put("describeLogDirs", () -> {
            String name = filled(10);
            Map<String, LogDirDescription> found = admin.describeLogDirs(List.of(broker())).allDescriptions().get().get(broker());
            check(found.values().stream().anyMatch(each -> each.replicaInfos().containsKey(first(name)) && each.replicaInfos().get(first(name)).size() > 0), found.keySet());
            return found.keySet();
        });
        calls.put("describeReplicaLogDirs", () -> {
            TopicPartitionReplica replica = new TopicPartitionReplica(filled(1), 0, broker());
            DescribeReplicaLogDirsResult.ReplicaLogDirInfo found = admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica);
            check(found.getCurrentReplicaLogDir() != null, found);
            return found;
        });
        calls.put("alterReplicaLogDirs", () -> {
            TopicPartitionReplica replica = new TopicPartitionReplica(filled(1), 0, broker());
            String here = admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica).getCurrentReplicaLogDir();
            return admin.alterReplicaLogDirs(Map.of(replica, here)).all().get();
        });
        calls.put("describeMetadataQuorum", () -> {
            QuorumInfo found = admin.describeMetadataQuorum().quorumInfo().get();
            check(found.leaderId() == broker() && found.voters().size() == 1, found);
            return found;
        });
        calls.put("electLeaders", () -> {
            TopicPartition place = first(topic(1));
            Optional<Throwable> found = admin.electLeaders(ElectionType.PREFERRED, Set.of(place)).partitions().get().get(place);
            check(found.isPresent() && found.get().getClass().getSimpleName().equals("ElectionNotNeededException"), found);
            return found;
        });
        calls.put("alterPartitionReassignments", () -> {
            TopicPartition place = first(topic(1));
            return admin.alterPartitionReassignments(Map.of(place, Optional.of(new NewPartitionReassignment(List.of(broker()))))).all().get();
        });
        calls.put("listPartitionReassignments", () -> {
            Map<TopicPartition, PartitionReassignment> found = admin.listPartitionReassignments().reassignments().get();
            check(found.isEmpty(), found);
            return found;
        });
        calls.put("metrics", () -> admin.metrics().size());
        calls.put("registerMetricForSubscription", () -> {
            admin.registerMetricForSubscription((org.apache.kafka.common.metrics.KafkaMetric) admin.metrics().values().iterator().next());
            return null;
        });
        calls.put("unregisterMetricFromSubscription", () -> {
            admin.unregisterMetricFromSubscription((org.apache.kafka.common.metrics.KafkaMetric) admin.metrics().values().iterator().next());
            return null;
        });
        calls.put("clientInstanceId", () -> admin.clientInstanceId(Duration.ofSeconds(5)));
        calls.put("unregisterBroker", () -> admin.unregisterBroker(99).all().get());
        calls.put("addRaftVoter", () -> admin.addRaftVoter(9, Uuid.randomUuid(), Set.of(new RaftVoterEndpoint("X", "127.0.0.1", 9))).all().get());
        calls.put("removeRaftVoter", () -> admin.removeRaftVoter(9, Uuid.randomUuid()).all().get());
    }

    private void transactions() {
        calls.put("listTransactions", () -> {
            String id = fresh("tx");
            try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", id))) {
                producer.initTransactions();
                Collection<TransactionListing> found = admin.listTransactions().all().get();
                check(found.stream().anyMatch(each -> each.transactionalId().equals(id)), found);
                return found.size();
            }
        });
        calls.put("describeTransactions", () -> {
            String id = fresh("tx");
            String topic = topic(1);
            try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", id))) {
                producer.initTransactions();
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, 0, "k", "v")).get();
                TransactionDescription found = admin.describeTransactions(Set.of(id)).all().get().get(id);
                check(found.state() == TransactionState.ONGOING && found.topicPartitions().equals(Set.of(first(topic))), found);
                producer.abortTransaction();
                return found;
            }
        });
        calls.put("fenceProducers", () -> {
            String id = fresh("tx");
            try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", id))) {
                producer.initTransactions();
                admin.fenceProducers(Set.of(id)).all().get();
                producer.beginTransaction();
                try {
                    producer.send(new ProducerRecord<>(topic(1), 0, "k", "v")).get();
                    producer.commitTransaction();
                } catch (ExecutionException | org.apache.kafka.common.KafkaException fenced) {
                    return "fenced by " + fenced;
                }
                throw new IllegalStateException("it went on");
            }
        });
        calls.put("abortTransaction", () -> {
            String topic = topic(1);
            try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", fresh("tx")))) {
                producer.initTransactions();
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, 0, "k", "v")).get();
                ProducerState open = admin.describeProducers(List.of(first(topic))).partitionResult(first(topic)).get().activeProducers().get(0);
                admin.abortTransaction(new AbortTransactionSpec(first(topic), open.producerId(), (short) open.producerEpoch(), open.coordinatorEpoch().orElse(0))).all().get();
                long stable = admin.listOffsets(Map.of(first(topic), OffsetSpec.latest()), new ListOffsetsOptions(org.apache.kafka.common.IsolationLevel.READ_COMMITTED)).all().get().get(first(topic)).offset();
                check(stable == 2, stable);
                return stable;
            }
        });
        calls.put("forceTerminateTransaction", () -> {
            String id = fresh("tx");
            String topic = topic(1);
            try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", id))) {
                producer.initTransactions();
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, 0, "k", "v")).get();
                admin.forceTerminateTransaction(id).result().get();
                return admin.describeTransactions(Set.of(id)).all().get().get(id).state();
            }
        });
    }

    private void quotas() {
        calls.put("alterClientQuotas", () -> {
            ClientQuotaEntity of = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, fresh("client")));
            return admin.alterClientQuotas(List.of(new ClientQuotaAlteration(of, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e9))))).all().get();
        });
        calls.put("describeClientQuotas", () -> {
            String client = fresh("client");
            ClientQuotaEntity of = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, client));
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(of, List.of(new ClientQuotaAlteration.Op("consumer_byte_rate", 1e9))))).all().get();
            ClientQuotaFilter filter = ClientQuotaFilter.containsOnly(List.of(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.CLIENT_ID, client)));
            Map<ClientQuotaEntity, Map<String, Double>> found = admin.describeClientQuotas(filter).entities().get();
            check(found.equals(Map.of(of, Map.of("consumer_byte_rate", 1e9))), found);
            return found;
        });
    }

    private void security() {
        calls.put("createAcls", () -> admin.createAcls(List.of(binding(fresh("acl")))).all().get());
        calls.put("describeAcls", () -> {
            AclBinding binding = binding(fresh("acl"));
            admin.createAcls(List.of(binding)).all().get();
            Collection<AclBinding> found = admin.describeAcls(binding.toFilter()).values().get();
            check(List.copyOf(found).equals(List.of(binding)), found);
            return found;
        });
        calls.put("deleteAcls", () -> {
            AclBinding binding = binding(fresh("acl"));
            admin.createAcls(List.of(binding)).all().get();
            check(admin.deleteAcls(List.of(binding.toFilter())).all().get().size() == 1, binding);
            Collection<AclBinding> left = admin.describeAcls(binding.toFilter()).values().get();
            check(left.isEmpty(), left);
            return left;
        });
        calls.put("alterUserScramCredentials", () -> withPassword(fresh("user")));
        calls.put("describeUserScramCredentials", () -> {
            String user = fresh("user");
            withPassword(user);
            List<ScramCredentialInfo> found = admin.describeUserScramCredentials(List.of(user)).description(user).get().credentialInfos();
            check(found.equals(List.of(new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096))), found);
            return found;
        });
        calls.put("createDelegationToken", () -> token().tokenInfo());
        calls.put("describeDelegationToken", () -> {
            String id = token().tokenInfo().tokenId();
            List<DelegationToken> found = admin.describeDelegationToken().delegationTokens().get();
            check(found.stream().anyMatch(each -> each.tokenInfo().tokenId().equals(id)), id);
            return found.size();
        });
        calls.put("renewDelegationToken", () -> {
            DelegationToken token = token();
            long until = admin.renewDelegationToken(token.hmac()).expiryTimestamp().get();
            check(until >= token.tokenInfo().issueTimestamp(), until);
            return until;
        });
        calls.put("expireDelegationToken", () -> {
            DelegationToken token = token();
            admin.expireDelegationToken(token.hmac()).expiryTimestamp().get();
            List<DelegationToken> left = admin.describeDelegationToken().delegationTokens().get();
            check(left.stream().noneMatch(each -> each.tokenInfo().tokenId().equals(token.tokenInfo().tokenId())), left);
            return left.size();
        });
    }

    private DelegationToken token() throws Exception {
        return admin.createDelegationToken().delegationToken().get();
    }

    private Void withPassword(String user) throws Exception {
        ScramCredentialInfo info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        return admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(user, info, "secret"))).all().get();
    }

    private static AclBinding binding(String topic) {
        return new AclBinding(
            new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL),
            new AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW));
    }

    private void otherGroups() {
        calls.put("describeShareGroups", () -> admin.describeShareGroups(Set.of("s")).all().get());
        calls.put("listShareGroupOffsets", () -> admin.listShareGroupOffsets(Map.of("s", new ListShareGroupOffsetsSpec())).all().get());
        calls.put("alterShareGroupOffsets", () -> admin.alterShareGroupOffsets("s", Map.of(first(topic(1)), 0L)).all().get());
        calls.put("deleteShareGroupOffsets", () -> admin.deleteShareGroupOffsets("s", Set.of("t")).all().get());
        calls.put("deleteShareGroups", () -> admin.deleteShareGroups(Set.of(fresh("share"))).all().get());
        calls.put("describeStreamsGroups", () -> {
            // One that does not exist: a member is an application, and compat-tests/kafka-streams has those.
            try {
                return admin.describeStreamsGroups(Set.of("s")).all().get();
            } catch (ExecutionException refused) {
                check(refused.getCause() instanceof GroupIdNotFoundException, refused);
                return "not found";
            }
        });
        calls.put("listStreamsGroupOffsets", () -> {
            String topic = topic(1);
            String group = group(topic);
            return admin.listStreamsGroupOffsets(Map.of(group, new ListStreamsGroupOffsetsSpec())).all().get();
        });
        calls.put("alterStreamsGroupOffsets", () -> admin.alterStreamsGroupOffsets(fresh("streams"), Map.of(first(topic(1)), new OffsetAndMetadata(0))).all().get());
        calls.put("deleteStreamsGroupOffsets", () -> {
            String topic = topic(1);
            return admin.deleteStreamsGroupOffsets(group(topic), Set.of(first(topic))).all().get();
        });
        calls.put("deleteStreamsGroups", () -> admin.deleteStreamsGroups(Set.of(group(topic(1)))).all().get());
    }
}
