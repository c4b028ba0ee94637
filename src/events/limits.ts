/** Limits of events, the same on a cluster and in one process. */

/** Events that an agent publishes; on a cluster, at one gateway. */
export const AGENT_EVENT_RATE = { perSecond: 1, burst: 60, unit: 'events' };
/** Events that all agents of a namespace publish; on a cluster, at one gateway. */
export const NAMESPACE_EVENT_RATE = { perSecond: 10, burst: 300, unit: 'events of its namespace' };

/** Limit of the data of an event, in bytes of its JSON. */
export const MAX_EVENT_BYTES = 8 * 1_024;
/** Triggers and subscriptions that one event reaches. */
export const MAX_RECIPIENTS = 100;
/** The latest events of a namespace that its history has. */
export const MAX_PAST_EVENTS = 1_000;

export const MAX_AGENT_SUBSCRIPTIONS = 50;
export const MAX_NAMESPACE_SUBSCRIPTIONS = 500;
