'use strict'

const { ConfigResourceTypes } = require('kafkajs')

class Administering {
  constructor(kafka) {
    this.client = kafka.admin()
  }

  async start() {
    await this.client.connect()
  }

  async create({ topic, partition_count, config }) {
    const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }))
    const made = await this.client.createTopics({
      topics: [{ topic, numPartitions: partition_count, configEntries }],
    })
    // An existing topic is no error for it, only a `false`.
    if (!made) throw Object.assign(new Error(`${topic} exists`), { code: 36 })
  }

  async grow({ topic, partition_count }) {
    await this.client.createPartitions({ topicPartitions: [{ topic, count: partition_count }] })
  }

  async delete({ topic }) {
    await this.client.deleteTopics({ topics: [topic] })
  }

  async topics() {
    return this.client.listTopics()
  }

  async configs({ topic }) {
    const { resources } = await this.client.describeConfigs({
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
      includeSynonyms: false,
    })
    return Object.fromEntries(resources[0].configEntries.map(each => [each.configName, each.configValue]))
  }

  async alter({ topic, config }) {
    const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }))
    await this.client.alterConfigs({
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }],
    })
  }

  async delete_records({ topic, partition, before }) {
    // It does not ask where a topic is that it has not met: FINDINGS.md.
    await this.client.fetchTopicOffsets(topic)
    await this.client.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] })
  }

  async groups() {
    return (await this.client.listGroups()).groups.map(each => each.groupId)
  }

  async group({ group }) {
    const { groups } = await this.client.describeGroups([group])
    return [groups[0].state, groups[0].members.length]
  }

  async group_offsets({ group, topic }) {
    const [found] = await this.client.fetchOffsets({ groupId: group, topics: [topic] })
    return Object.fromEntries(found.partitions.map(each => [each.partition, Number(each.offset)]))
  }

  async delete_group({ group }) {
    await this.client.deleteGroups([group])
  }

  async close() {
    await this.client.disconnect()
  }
}

module.exports = { Administering }
