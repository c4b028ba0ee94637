import { AGENT_PROGRAM_PROCESSES, POD_PATHS } from '../../api/cluster.ts';
import { bytesQuantity } from '../kube/quantities.ts';
import { type AgentProgramConfig, programMemory } from './agent-program.ts';

/** What an agent program changes in the template of a pod. */
export interface ProgramParts {
  /** Of the sandbox container. */
  readonly image: string;
  readonly args: readonly string[];
  readonly memoryBytes: number;
  readonly agentMemoryBytes: number;
  readonly volumeMount: object;
  readonly volume: object;
}

const VOLUME = 'programs';
/** The client of the program, and requests of its processes that are open. */
const AGENT_MEMORY_BYTES = 134_217_728;

/** The homes are in memory, so that they end with the pod, and count as memory of the sandbox container. */
export function programParts(config: AgentProgramConfig): ProgramParts {
  const { image, name, folder, program, arguments: given = [], environment = {} } = config;
  const { bytes, homesBytes, heapMebibytes } = programMemory(config, AGENT_PROGRAM_PROCESSES);
  const text = JSON.stringify({ name, folder, program, arguments: given, environment });
  return {
    image,
    // The kubelet would replace `$(NAME)`.
    args: ['--program', text.replaceAll('$', '\\u0024'), '--program-heap', String(heapMebibytes)],
    memoryBytes: bytes,
    agentMemoryBytes: AGENT_MEMORY_BYTES,
    volumeMount: { name: VOLUME, mountPath: POD_PATHS.programHomes },
    volume: { name: VOLUME, emptyDir: { medium: 'Memory', sizeLimit: bytesQuantity(homesBytes) } },
  };
}
