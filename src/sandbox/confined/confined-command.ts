import { limitedCommand, type RunnerCommand } from '../runner-command.ts';

/** A JavaScript program of a user, which Temper does not trust. */
export interface ConfinedProgram {
  /** Absolute path of the folder that the program may read. */
  folder: string;
  /** Absolute path of the program, in the folder. */
  program: string;
  arguments: readonly string[];
  /** Heap limit in MiB; 512 when absent. */
  heapMebibytes?: number;
}

/** What the process of a program may use beside its folder. */
export interface Confinement {
  /** Absolute path of a folder that it may read and write. */
  home: string;
  /** Absolute paths of further folders. */
  read?: readonly string[];
  write?: readonly string[];
  /** The texts of modules that run before the program. */
  preloads: readonly string[];
}

const HEAP_MIB = 512;
/** The largest file that the program may write, in blocks of 512 bytes: 64 MiB. */
const FILE_BLOCKS = 131_072;

/**
 * The command line of a program. Node refuses it other processes, native code, the network, and all files but those of its folders; the
 * kernel limits are those of a runner.
 */
export function confinedCommand(
  node: string,
  { folder, program, arguments: given, heapMebibytes = HEAP_MIB }: ConfinedProgram,
  { home, read = [], write = [], preloads }: Confinement,
  exists?: (path: string) => boolean,
): RunnerCommand {
  const args = [
    '--permission',
    ...[folder, home, ...read, ...write].map((path) => `--allow-fs-read=${path}/*`),
    ...[home, ...write].map((path) => `--allow-fs-write=${path}/*`),
    `--max-old-space-size=${heapMebibytes}`,
    '--no-warnings',
    ...preloads.flatMap((text) => ['--import', `data:text/javascript;base64,${Buffer.from(text).toString('base64')}`]),
    program,
    ...given,
  ];
  return limitedCommand(node, args, { fileBlocks: FILE_BLOCKS, writable: [home, ...write] }, exists);
}
