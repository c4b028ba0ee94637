import type { ErrorCode } from '../lib/error-codes.ts';
import { ERROR_CODES } from '../lib/error-codes.ts';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import { type BuriedMessage, bury, buryLost, deadLetterSubject, removeFromInbox } from './burial.ts';
import type { BusConnection } from './connection.ts';
import { envelopeFrom } from './envelope.ts';
import { busFailure } from './failures.ts';
import { tellFailure } from './failed-lines.ts';
import { createConsumers, deliveredAndThere } from './inbox-consumers.ts';
import { CONSUMERS, STREAMS, subjects, token } from './names.ts';
import { publish } from './publish.ts';
import { countsOf, firstMessage, jsonOf, lastMessage, purge, storedMessages } from './stored.ts';
import { workOff } from './work.ts';

export interface DeadLetters {
  /** Newest first, at most 1,000. All agents when no uid is given. */
  list(agentUid?: string): Promise<BuriedMessage[]>;
  get(agentUid: string, id: string): Promise<BuriedMessage | undefined>;
  /**
   * Into the inbox again, with as much time as its chain had at first, and out of here. TEMPER_NOT_FOUND, or
   * TEMPER_MESSAGE_INVALID when there is no message in it.
   */
  retry(agentUid: string, id: string): Promise<void>;
  /** Tells who follows its session as well. TEMPER_NOT_FOUND when there is none. */
  drop(agentUid: string, id: string): Promise<void>;
  count(agentUid: string): Promise<number>;
  /** For a removed agent. */
  remove(agentUid: string): Promise<void>;
  /** Buries what the server gave up, as it tells, until the signal is aborted. Several replicas may run it. */
  run(signal: AbortSignal, onFailure?: (error: unknown) => void): Promise<void>;
  /** Looks into every inbox for messages given up of which nobody was told. Returns how many it buried. Once a minute will do. */
  reconcile(): Promise<number>;
}

const MOST_LISTED = 1_000;
const GIVEN_UP = 'delivered as often as allowed, and nobody ended it';

/** Messages that were given up, where people see them. */
export function createDeadLetters(connection: BusConnection): DeadLetters {
  const existing = async (agentUid: string, id: string) => {
    const found = await lastMessage(connection, STREAMS.deadLetters, deadLetterSubject(agentUid, id));
    if (found !== undefined) return found;
    throw new TemperError('TEMPER_NOT_FOUND', `there is no dead letter "${printable(id, 80)}"; list those there are`);
  };
  const dropAt = async (seq: number): Promise<void> => {
    try {
      await connection.ask(() => connection.manager.streams.deleteMessage(STREAMS.deadLetters, seq, false));
    } catch (error) {
      throw busFailure(error, 'dropping a dead letter');
    }
  };
  return {
    async list(agentUid) {
      const filter = `temper.deadletters.${agentUid === undefined ? '*' : token(agentUid)}.>`;
      let found: BuriedMessage[] = [];
      for await (const { data } of storedMessages(connection, STREAMS.deadLetters, filter)) {
        const buried = buriedFrom(jsonOf(data));
        if (buried !== undefined) found.push(buried);
        if (found.length >= 2 * MOST_LISTED) found = found.slice(-MOST_LISTED);
      }
      return found.slice(-MOST_LISTED).reverse();
    },
    async get(agentUid, id) {
      const found = await lastMessage(connection, STREAMS.deadLetters, deadLetterSubject(agentUid, id));
      return found === undefined ? undefined : buriedFrom(jsonOf(found.data));
    },
    async retry(agentUid, id) {
      const found = await existing(agentUid, id);
      const message = buriedFrom(jsonOf(found.data))?.message;
      if (message === undefined) {
        throw new TemperError('TEMPER_MESSAGE_INVALID', `dead letter ${id} holds no message to send again; drop it`);
      }
      const now = connection.clock.now();
      const allowed = Date.parse(message.deadline) - Date.parse(message.time);
      const deadline = new Date(now.getTime() + allowed).toISOString();
      const again = { ...message, time: now.toISOString(), deadline };
      // The id makes a retry that was cut off before the next line, and is repeated, the same one.
      await publish(connection, subjects.inbox(agentUid), again as unknown as Json, { id: `retry:${agentUid}:${id}` });
      await dropAt(found.seq);
    },
    async drop(agentUid, id) {
      const { seq, data } = await existing(agentUid, id);
      const buried = buriedFrom(jsonOf(data));
      const why = { code: 'TEMPER_MESSAGE_DROPPED', reason: 'a person dropped it from the dead letters' } as const;
      if (buried !== undefined) await tellFailure(connection, 'dropped', { ...buried, ...why });
      await dropAt(seq);
    },
    async count(agentUid) {
      const counts = await countsOf(connection, STREAMS.deadLetters, `temper.deadletters.${token(agentUid)}.>`);
      return Object.values(counts).reduce((sum, count) => sum + count, 0);
    },
    remove: (agentUid) => purge(connection, STREAMS.deadLetters, `temper.deadletters.${token(agentUid)}.>`),
    async run(signal, onFailure = () => undefined) {
      const queue = { stream: STREAMS.advisories, consumer: CONSUMERS.deadLetters, signal, onFailure };
      await workOff(connection, queue, ({ data }) => followAdvisory(connection, jsonOf(data)));
    },
    reconcile: () => buryForgotten(connection),
  };
}

/** One thing the server said about a delivery. What is none, or concerns another stream, is passed over. */
async function followAdvisory(connection: BusConnection, advisory: Json | undefined): Promise<void> {
  if (!isJsonObject(advisory) || advisory.stream !== STREAMS.inbox) return;
  const { type, consumer: agentUid, stream_seq: streamSequence, deliveries } = advisory;
  if (typeof agentUid !== 'string' || typeof streamSequence !== 'number' || typeof deliveries !== 'number') return;
  if (typeof type !== 'string' || !type.endsWith('.terminated')) {
    await giveUp(connection, agentUid, streamSequence, deliveries);
    return;
  }
  const place = `temper.deadletters.${token(agentUid)}.${streamSequence}.*`;
  if ((await firstMessage(connection, STREAMS.deadLetters, place)) !== undefined) return;
  const reason = 'ended at the server before it was copied; its content is lost';
  await buryLost(connection, { agentUid, streamSequence, deliveries, code: 'TEMPER_MESSAGE_UNDELIVERED', reason });
}

async function giveUp(
  connection: BusConnection,
  agentUid: string,
  streamSequence: number,
  deliveries: number,
): Promise<boolean> {
  const why = { code: 'TEMPER_MESSAGE_UNDELIVERED', reason: GIVEN_UP } as const;
  if (!(await bury(connection, { agentUid, streamSequence, deliveries, ...why }))) return false;
  await removeFromInbox(connection, streamSequence);
  return true;
}

async function buryForgotten(connection: BusConnection): Promise<number> {
  const consumers = createConsumers(connection);
  const counts = await countsOf(connection, STREAMS.inbox, 'temper.inbox.*');
  let buried = 0;
  for (const agentUid of Object.keys(counts).map((subject) => subject.slice('temper.inbox.'.length))) {
    const info = await consumers.info(agentUid);
    if (info === undefined) continue;
    const { givenUp } = await deliveredAndThere(connection, agentUid, info);
    for (const place of givenUp) {
      if (await giveUp(connection, agentUid, place, info.config.max_deliver ?? 0)) buried += 1;
    }
  }
  return buried;
}

function buriedFrom(value: Json | undefined): BuriedMessage | undefined {
  if (!isJsonObject(value)) return undefined;
  const { id, agentUid, time, deliveries, code, reason } = value;
  if (typeof id !== 'string' || typeof agentUid !== 'string' || typeof time !== 'string') return undefined;
  if (typeof deliveries !== 'number' || typeof reason !== 'string' || !isErrorCode(code)) return undefined;
  const message = envelopeFrom(value.message);
  return { id, agentUid, time, deliveries, code, reason, ...(message === undefined ? {} : { message }) };
}

function isErrorCode(code: Json | undefined): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERROR_CODES, code);
}
