// kafkajs behind lines of JSON; behaviours/program.py has the table of requests.
'use strict'

const fs = require('fs')
const readline = require('readline')
const { Kafka, KafkaJSProtocolError, CompressionTypes, CompressionCodecs, logLevel } = require('kafkajs')
const { Administering } = require('./administering')
const { Consuming } = require('./consuming')
const { Producing } = require('./producing')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
// The warning is about a default that changed with version 2, and we name no partitioner.
process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'

const KINDS = { producer: Producing, consumer: Consuming, member: Consuming, admin: Administering }
const handles = new Map()

function answer(id, kind, value) {
  process.stdout.write(JSON.stringify({ id, [kind]: value === undefined ? null : value }) + '\n')
}

// A code of Kafka's may lie inside the errors of one call for many topics, or under a cause.
function refusal(error) {
  if (!error) return null
  if (error instanceof KafkaJSProtocolError || Number.isInteger(error.code)) return error
  for (const inner of [...(error.errors || []), ...(error.groups || []), error.cause]) {
    const found = refusal(inner)
    if (found) return found
  }
  return Number.isInteger(error.errorCode) ? { code: error.errorCode, message: error.groupId } : null
}

function fail(id, error) {
  const refused = refusal(error)
  if (refused) answer(id, 'refused', [refused.code, String(refused.message)])
  else answer(id, 'broken', String(error.stack || error))
}

// TLS, and a password or a certificate.
function loginOf(login) {
  if (!login) return {}
  const read = file => (file ? fs.readFileSync(file, 'utf8') : undefined)
  const ssl = { ca: [read(login.ca)], cert: read(login.certificate), key: read(login.key) }
  if (!login.mechanism) return { ssl }
  const { user, password } = login
  return { ssl, sasl: { mechanism: login.mechanism.toLowerCase(), username: user, password } }
}

async function open(request) {
  const kafka = new Kafka({
    clientId: 'compat',
    brokers: [request.bootstrap],
    ...loginOf(request.login),
    logLevel: logLevel.ERROR,
    // Five retries, its default, are over before a busy machine has restarted a server.
    retry: { retries: 30, maxRetryTime: 1000 },
    logCreator: () => ({ log }) => process.stderr.write(JSON.stringify(log) + '\n'),
  })
  const handle = new KINDS[request.do](kafka, request)
  await handle.start()
  const number = handles.size + 1
  handles.set(number, { handle, last: Promise.resolve() })
  return number
}

function take(request) {
  if (request.on === undefined) {
    open(request).then(number => answer(request.id, 'ok', number), error => fail(request.id, error))
    return
  }
  const opened = handles.get(request.on)
  const work = () => opened.handle[request.do](request)
  const done = request.do === 'send' ? Promise.resolve().then(work) : opened.last.then(work)
  if (request.do !== 'send') opened.last = done.catch(() => {})
  done.then(value => answer(request.id, 'ok', value), error => fail(request.id, error))
}

readline
  .createInterface({ input: process.stdin, crlfDelay: Infinity })
  .on('line', line => take(JSON.parse(line)))
  .on('close', () => process.exit(0))
