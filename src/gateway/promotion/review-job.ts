import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import type { TesterRequest } from '../../nats/promotion/panel-reviews.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Canaries } from '../../tempering/canary/canaries.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { AgentState } from '../agent-state.ts';
import type { AgentDirectory } from '../deps.ts';
import type { ModelAccessDeps } from '../models/agent-model-access.ts';
import type { ArtifactVetter } from '../review/vetting/pool.ts';

export interface ReviewJobDeps extends ModelAccessDeps {
  directory: ModelAccessDeps['directory'] & Pick<AgentDirectory, 'byUid'>;
  bus: JetStreamConnection;
  registry: Pick<SessionRegistry, 'tools'>;
  vetter: ArtifactVetter;
  /** Supervises the reviewers of panels. */
  canaries: Canaries;
  clock: Clock;
  ids: IdGenerator;
  log: Logger;
}

/** Of a job, all models together. */
export const REVIEW_TIMEOUT_MS = 4 * 60_000;
/** A gateway that does not know the agent may have a cache that lags. */
const MAX_UNKNOWN_DELIVERIES = 5;

/** Undefined when the agent does not exist any more. */
export function agentOf({ directory }: ReviewJobDeps, agentUid: string, deliveries: number): AgentState | undefined {
  const state = directory.byUid(agentUid);
  if (state === undefined && deliveries < MAX_UNKNOWN_DELIVERIES) {
    throw new TemperError('TEMPER_NOT_FOUND', 'this gateway does not know the agent of a review yet', {
      retry: 'backoff',
    });
  }
  return state;
}

/** The tool that a job is about; undefined when its session does not have it any more. */
export async function sessionTool(
  { registry }: ReviewJobDeps,
  { agentUid, session, digest }: Pick<TesterRequest, 'agentUid' | 'session' | 'digest'>,
): Promise<RegisteredTool | undefined> {
  return (await registry.tools(agentUid, session)).find((candidate) => candidate.digest === digest);
}
