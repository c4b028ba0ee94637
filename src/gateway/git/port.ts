import type { RepositoryQuestion } from '../../gateway-api/repositories/repository-api.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { BrokeredTool, CallingMessage } from '../brokered/port.ts';
import type { RepositoryAnswer } from './repository-reads.ts';

/** A tool of pods that reads a repository, or has it changed. */
export interface GitTool extends Pick<BrokeredTool, 'descriptor' | 'definition' | 'requests'> {
  /** Absent for a tool that only reads. */
  readonly execute?: BrokeredTool['execute'];
  /** Answers a question of a call that was checked and permitted. Absent for a tool that asks none. */
  readonly read?: (
    question: RepositoryQuestion,
    input: JsonObject,
    message: CallingMessage,
    op: CallOptions,
  ) => Promise<RepositoryAnswer>;
}
