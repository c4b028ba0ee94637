import { assertSessionId } from '../../agent/session/session-id.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

export const STREAMS = {
  inbox: 'temper-inbox',
  events: 'temper-events',
  /** A copy of each reply and failure, so that no flood of events removes the only one. */
  replies: 'temper-replies',
  wakeups: 'temper-wakeups',
  /** Requests of promotions, and tools that wait for the review of the panel. */
  promotions: 'temper-promotions',
  /** Observed evidence of decisions. */
  audit: 'temper-audit',
  /** Observed evidence of ordinary work: what each call and each session of an agent adds. */
  activity: 'temper-activity',
  /** Evidence that pods report about themselves. */
  reports: 'temper-reports',
  deadLetters: 'temper-deadletters',
} as const;

export const BUCKETS = {
  sessions: 'temper-sessions',
  sessionTools: 'temper-session-tools',
  /** Sources of tools of agents that withhold them, encrypted. */
  sources: 'temper-sources',
  memory: 'temper-memory',
  /** Reported uses of tools and their inputs, which a verifier runs again. */
  evidence: 'temper-evidence',
  /** The state of each promotion, and the verdicts of its panel. */
  promotionStates: 'temper-promotion-states',
  /** What a verifier pod runs, and the outputs that it sent. */
  verifications: 'temper-verifications',
  ledger: 'temper-ledger',
  /** Health of model providers, and the states of pull requests. */
  health: 'temper-health',
  /** How messages ended, by id, so that none is processed twice. */
  acked: 'temper-acked',
  /** Deliveries that have not ended, one state per agent. */
  deliveries: 'temper-deliveries',
  /** Calls that wait for an approval, one document per agent. */
  pendingCalls: 'temper-pending-calls',
  /** Requests of agents to start or end child agents. */
  childRequests: 'temper-child-requests',
  /** How messages of users ended, and their ratings. */
  tasks: 'temper-tasks',
  /** When each schedule is due next, and its active run; the schedules that agents made. */
  schedules: 'temper-schedules',
  /** Subscriptions of agents to events, and what their triggers did. */
  triggers: 'temper-triggers',
  /** Events that have not reached all of their agents yet. */
  acceptedEvents: 'temper-accepted-events',
  /** One entry per agent with stored data, and the owner of the account. */
  residents: 'temper-residents',
} as const;

/** Consumers that a stream accepts: one per gateway reads the ledger, and the replicas of a role share one per queue. No agent has one. */
export const MAX_CONSUMERS = 1_000;

export type BucketName = (typeof BUCKETS)[keyof typeof BUCKETS];

/** A durable consumer that all replicas of a role share. */
export interface StreamQueue {
  readonly stream: string;
  readonly consumer: string;
  /** The subjects that it consumes. No other consumer of the stream has them. */
  readonly filter: string;
}

export const QUEUES = {
  wakeups: { stream: STREAMS.wakeups, consumer: 'wakeups', filter: 'temper.wakeups.*' },
  promotions: { stream: STREAMS.promotions, consumer: 'promotions', filter: 'temper.promotions.*' },
  panelReviews: { stream: STREAMS.promotions, consumer: 'panel-reviews', filter: 'temper.panel-reviews.*' },
} as const satisfies Record<string, StreamQueue>;

/**
 * Streams that several buckets share: on three servers every stream is a Raft group. Buckets that only Temper's own processes fill share
 * one, and so do the tools of sessions, their withheld sources and the inputs of their uses. What tenants fill never shares a stream with
 * the former.
 */
const SHARED_STREAMS: Readonly<Partial<Record<BucketName, string>>> = {
  [BUCKETS.promotionStates]: 'temper-state',
  [BUCKETS.verifications]: 'temper-state',
  [BUCKETS.pendingCalls]: 'temper-state',
  [BUCKETS.childRequests]: 'temper-state',
  [BUCKETS.health]: 'temper-state',
  [BUCKETS.schedules]: 'temper-state',
  [BUCKETS.triggers]: 'temper-state',
  [BUCKETS.acceptedEvents]: 'temper-state',
  [BUCKETS.residents]: 'temper-state',
  [BUCKETS.sessionTools]: 'temper-tools',
  [BUCKETS.sources]: 'temper-tools',
  [BUCKETS.evidence]: 'temper-tools',
};

/** The stream behind a bucket. */
export function bucketStream(bucket: BucketName): string {
  return SHARED_STREAMS[bucket] ?? `KV_${bucket}`;
}

/** The subject of a key, or a filter over keys. */
export function bucketSubject(bucket: BucketName, key: string): string {
  return `$KV.${bucket}.${key}`;
}

export const subjects = {
  inbox: (agentUid: string) => `temper.inbox.${token(agentUid)}`,
  /** Of no stream: notifies that the inbox of the agent may have a message to deliver. */
  notifyInbox: (agentUid: string) => `temper.notify.${token(agentUid)}`,
  /** Of no stream: notifies that the session has a new event. */
  notifySession: (agentUid: string, session: string) => `temper.notify.${token(agentUid)}.${sessionToken(session)}`,
  /** Of no stream: notifies that a verifier pod has work. */
  notifyVerifier: (podUid: string) => `temper.notify.verifier.${token(podUid)}`,
  /** Of no stream: notifies that a promotion has a further result. */
  notifyPromotions: () => 'temper.notify.promotions',
  /** Of no stream: notifies that an agent asks for a child, or for the end of one. */
  notifyChildRequests: () => 'temper.notify.children',
  /** Of no stream: notifies that the operator announced an event of the platform. */
  notifyEvents: () => 'temper.notify.events',
  events: (agentUid: string, session: string) => `temper.events.${token(agentUid)}.${sessionToken(session)}`,
  /** Events that agents published, or that are about them. No token of a session begins with `=`. `agentUid` may be `*`. */
  published: (agentUid: string, namespace: string) =>
    `temper.events.${agentUid === '*' ? '*' : token(agentUid)}.=${token(namespace)}`,
  replies: (agentUid: string, session: string) => `temper.replies.${token(agentUid)}.${sessionToken(session)}`,
  wakeups: (agentUid: string) => `temper.wakeups.${token(agentUid)}`,
  promotions: (agentUid: string) => `temper.promotions.${token(agentUid)}`,
  panelReviews: (agentUid: string) => `temper.panel-reviews.${token(agentUid)}`,
  audit: (namespace: string) => `temper.audit.${token(namespace)}`,
  /** `agentUid` may be `*`. */
  activity: (namespace: string, agentUid: string) =>
    `temper.activity.${token(namespace)}.${agentUid === '*' ? '*' : token(agentUid)}`,
  /** `agentUid` may be `*`. */
  reports: (namespace: string, agentUid: string) =>
    `temper.reports.${token(namespace)}.${agentUid === '*' ? '*' : token(agentUid)}`,
} as const;

const TOKEN = /^[A-Za-z0-9_-]{1,64}$/;

/** A UID or namespace as one token of a subject or key. Rejects everything else: a `.` or `*` would address data of another agent. */
export function token(text: string): string {
  if (TOKEN.test(text)) return text;
  throw new TemperError(
    'TEMPER_INTERNAL',
    `"${printable(text, 80)}" is not a UID or namespace of 1 to 64 letters, digits, "-" or "_", so it cannot be a token of a subject`,
  );
}

/** Session ids may contain dots, which separate the tokens of a subject; they never contain `=`. */
export function sessionToken(session: string): string {
  assertSessionId(session);
  return session.replaceAll('.', '=');
}

export function sessionFromToken(sessionToken: string): string {
  return sessionToken.replaceAll('=', '.');
}
