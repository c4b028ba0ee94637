import { sha256 } from '../lib/canonical.ts';
import type { CallerContext } from './contract.ts';

/** One session of one agent. Session ids are unique per agent only. */
export type SessionScope = Pick<CallerContext, 'agent' | 'namespace' | 'session'>;

/** The collection with one document per session. */
export const SESSIONS = 'sessions';

const DNS_NAME = /^[a-z0-9][a-z0-9.-]*$/;
const PLAIN_SESSION = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/;
const MAX_NAME = 180;

/**
 * The record name of a session: `<namespace>_<agent>_<session>`, as the kubelet names the log folders of pods. Names of agents and
 * namespaces contain no "_", so two sessions never share a name. Unusual or long names are replaced by a digest, which contains no "_".
 */
export function sessionRecordName({ agent, namespace, session }: SessionScope): string {
  const name = `${namespace}_${agent}_${session}`;
  const isPlain = DNS_NAME.test(namespace) && DNS_NAME.test(agent) && PLAIN_SESSION.test(session);
  if (isPlain && name.length <= MAX_NAME) return name;
  return `x-${sha256(JSON.stringify([namespace, agent, session])).slice('sha256:'.length)}`;
}

/** The path below which everything of a session is stored. */
export function sessionPath(scope: SessionScope): string {
  return `${SESSIONS}/${sessionRecordName(scope)}`;
}
