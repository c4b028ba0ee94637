import { assertSessionId } from '../agent/session-id.ts';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';

export const STREAMS = {
  inbox: 'temper-inbox',
  events: 'temper-events',
  wakes: 'temper-wakes',
  promotions: 'temper-promotions',
  audit: 'temper-audit',
  deadLetters: 'temper-deadletters',
  advisories: 'temper-advisories',
} as const;

export const BUCKETS = {
  sessions: 'temper-sessions',
  sessionTools: 'temper-session-tools',
  memory: 'temper-memory',
  ledger: 'temper-ledger',
  /** How providers of models do. */
  health: 'temper-health',
  /** Ids of messages that were acknowledged, so that none is worked on again. */
  settled: 'temper-settled',
} as const;

export type BucketName = (typeof BUCKETS)[keyof typeof BUCKETS];

/** Durable consumers that all replicas of a role share. An inbox has one a agent, named by its uid. */
export const CONSUMERS = { deadLetters: 'dead-letters', wakes: 'wakes', promotions: 'promotions' } as const;

/** The stream behind a bucket. */
export function bucketStream(bucket: BucketName): string {
  return `KV_${bucket}`;
}

/** The subject of a key, or a filter over keys. */
export function bucketSubject(bucket: BucketName, key: string): string {
  return `$KV.${bucket}.${key}`;
}

export const subjects = {
  inbox: (agentUid: string) => `temper.inbox.${token(agentUid)}`,
  events: (agentUid: string, session: string) => `temper.events.${token(agentUid)}.${sessionToken(session)}`,
  wakes: (agentUid: string) => `temper.wakes.${token(agentUid)}`,
  promotions: (agentUid: string) => `temper.promotions.${token(agentUid)}`,
  audit: (namespace: string) => `temper.audit.${token(namespace)}`,
} as const;

const TOKEN = /^[A-Za-z0-9_-]{1,64}$/;

/** A uid or a namespace as one token of a subject or key. Anything else is refused: a `.` or `*` would change whose it is. */
export function token(text: string): string {
  if (TOKEN.test(text)) return text;
  throw new TemperError(
    'TEMPER_INTERNAL',
    `"${printable(text, 80)}" is no uid or namespace of 1 to 64 letters, digits, "-" or "_", so it can be no part of a subject`,
  );
}

/** Session ids may hold dots, which part subjects; they never hold `=`. */
export function sessionToken(session: string): string {
  assertSessionId(session);
  return session.replaceAll('.', '=');
}

export function sessionOf(sessionToken: string): string {
  return sessionToken.replaceAll('=', '.');
}
