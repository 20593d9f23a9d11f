'use strict';

// One verb of the Node client a run: `node probe.js VERB JSON`. What happened is printed as JSON
// lines; the exit code is 0 when the verb did all it was asked to do.

const fs = require('fs');

const { Consumer, Message, Producer } = require('ali-ons');

const GRACE_SECONDS = 20;
const DEFAULTS = { count: 1, expected: 1, timeout: 30, body: 'body', group: 'probe', producer: 'probe_producer', expression: '*' };

// Only addresses of an HTTP look-up need this, and none is made when a name server is named.
const httpclient = { request: async () => { throw new Error('no HTTP look-up expected'); } };
const quiet = () => {};
const logger = { debug: quiet, info: quiet, warn: console.error, error: console.error };

// Written at once: the process may exit right after, and a pipe drops what is only queued.
function say(event, fields) {
  const line = Buffer.from(JSON.stringify({ event, ...fields }) + '\n');
  for (let at = 0; at < line.length;) {
    try {
      at += fs.writeSync(1, line, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

function sayMessage(event, message) {
  say(event, {
    msgId: message.msgId,
    topic: message.topic,
    queueId: message.queueId,
    queueOffset: message.queueOffset,
    commitLogOffset: message.commitLogOffset,
    tags: message.tags,
    keys: message.keys,
    body: message.body.toString(),
    sysFlag: message.sysFlag,
    reconsumeTimes: message.reconsumeTimes,
    properties: message.properties,
  });
}

const keys = args => (args.accessKey ? { accessKey: args.accessKey, secretKey: args.secretKey } : {});

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

// As an application does that has to get its message through: againMs later once more, until time is up.
async function sendAgain(args, producer, index, message) {
  const end = Date.now() + args.timeout * 1000;
  for (;;) {
    try {
      return await producer.send(message);
    } catch (error) {
      if (!args.againMs || Date.now() > end) throw error;
      say('unsent', { index });
      await sleep(args.againMs);
    }
  }
}

async function sendSync(args) {
  const producer = new Producer({ httpclient, logger, nameSrv: args.namesrv, producerGroup: args.producer, ...keys(args) });
  await producer.ready();
  for (let i = 0; i < args.count; i++) {
    const body = `${args.body}-${i}`;
    const tags = args.tags ? args.tags[i % args.tags.length] : '';
    const message = new Message(args.topic, tags, body.padEnd(args.size || 0, '.'));
    if (args.keys) message.keys = [ `${args.keys}${i}` ];
    if (args.delayLevel) message.delayTimeLevel = args.delayLevel;
    const result = await sendAgain(args, producer, i, message);
    say('sent', {
      index: i,
      status: result.sendStatus,
      msgId: result.msgId,
      queueId: result.messageQueue.queueId,
      queueOffset: result.queueOffset,
    });
    await sleep(args.pauseMs || 0);
  }
  say('done', { count: args.count });
  await producer.close();
}

async function consume(args, isBroadcast) {
  const attempts = new Map();
  let count = 0;
  let complete;
  const all = new Promise(resolve => { complete = resolve; });
  const consumer = new Consumer({
    httpclient,
    logger,
    nameSrv: args.namesrv,
    consumerGroup: args.group,
    ...keys(args),
    isBroadcast,
    consumeFromWhere: 'CONSUME_FROM_FIRST_OFFSET',
  });
  consumer.on('error', error => console.error(error));
  consumer.subscribe(args.topic, args.expression, async message => {
    const seen = attempts.get(message.keys || message.msgId) || 0;
    attempts.set(message.keys || message.msgId, seen + 1);
    if (seen < (args.failures || 0)) {
      sayMessage('failed', message);
      return Consumer.ACTION_RETRY;
    }
    sayMessage('message', message);
    count++;
    if (count === args.expected) complete();
  });
  await consumer.ready();
  say('ready', {});
  await all;
  await sleep(args.lingerMs || 0);
  await consumer.close();
  say('done', { count });
}

const VERBS = {
  'send-sync': sendSync,
  'consume-concurrently': args => consume(args, false),
  'consume-broadcast': args => consume(args, true),
};

async function main() {
  const [ , , verb, text ] = process.argv;
  if (!VERBS[verb] || !text) {
    console.error(`usage: probe.js ${Object.keys(VERBS).join('|')} JSON`);
    process.exit(2);
  }
  const args = { ...DEFAULTS, ...JSON.parse(text) };
  setTimeout(() => {
    console.error('the verb took too long');
    process.exit(3);
  }, (args.timeout + GRACE_SECONDS) * 1000).unref();
  try {
    await VERBS[verb](args);
    process.exit(0);
  } catch (error) {
    console.error(error);
    say('error', { error: String(error) });
    process.exit(1);
  }
}

main();
