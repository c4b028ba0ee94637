import { AGENT_PROGRAM_NUMBERS, POD_PATHS } from '../../api/cluster.ts';
import { bytesQuantity } from '../kube/quantities.ts';
import { type AgentProgramConfig, programMemory } from './agent-program.ts';

/** What an agent program changes in the template of a pod. */
export interface ProgramParts {
  /** Of the sandbox container. */
  readonly image: string;
  readonly args: readonly string[];
  readonly memoryBytes: number;
  readonly agentMemoryBytes: number;
  readonly volumeMounts: readonly object[];
  readonly volumes: readonly object[];
}

/** Before the number of the process. */
const VOLUME = 'program-';
/** The client of the program, and requests of its processes that are open. */
const AGENT_MEMORY_BYTES = 134_217_728;

/**
 * The homes are in memory, so that they end with the pod, and count as memory of the sandbox container. Each process has a volume of its own, so
 * that one which fills its home leaves those of the others.
 */
export function programParts(config: AgentProgramConfig): ProgramParts {
  const { image, name, folder, program, arguments: given = [], environment = {} } = config;
  const { bytes, homesBytes, heapMebibytes } = programMemory(config, AGENT_PROGRAM_NUMBERS.length);
  const sizeLimit = bytesQuantity(Math.floor(homesBytes / AGENT_PROGRAM_NUMBERS.length));
  const text = JSON.stringify({ name, folder, program, arguments: given, environment });
  return {
    image,
    // The kubelet would replace `$(NAME)`.
    args: ['--program', text.replaceAll('$', '\\u0024'), '--program-heap', String(heapMebibytes)],
    memoryBytes: bytes,
    agentMemoryBytes: AGENT_MEMORY_BYTES,
    volumeMounts: AGENT_PROGRAM_NUMBERS.map((number) => ({
      name: `${VOLUME}${number}`,
      mountPath: `${POD_PATHS.programHomes}/${number}`,
    })),
    volumes: AGENT_PROGRAM_NUMBERS.map((number) => ({
      name: `${VOLUME}${number}`,
      emptyDir: { medium: 'Memory', sizeLimit },
    })),
  };
}
