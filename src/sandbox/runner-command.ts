/** The command line of a runner: its binary, its permissions and its kernel limits. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { EngineFiles } from './min-engine-version.ts';

export interface RunnerCommand {
  command: string;
  args: string[];
}

/** Reads one frame with the program and runs it. */
const LOADER = [
  "const {readSync:r}=require('fs')",
  'const f=b=>{for(let o=0;o<b.length;){const n=r(0,b,o,b.length-o,null);if(n===0)process.exit(0);o+=n}return b}',
  'const{program,engine}=JSON.parse(f(Buffer.alloc(f(Buffer.alloc(4)).readUInt32BE(0))))',
  'eval(program)(engine)',
].join(';');

/** Heap limit of the runner itself in MiB; guest code has a separate heap in the engine. */
const RUNNER_HEAP_MIB = 96;

/** Processor time in seconds after which the kernel kills a runner, in case its supervisor died without killing it. */
const MAX_PROCESSOR_SECONDS = 900;

const SHELL = '/bin/sh';

/** The images of Temper hold their launcher under this name beside Node. */
const LAUNCHER = 'temper-launcher';

/** The command line of a runner. */
export function runnerCommand(
  node: string,
  engine: EngineFiles,
  exists: (path: string) => boolean = existsSync,
): RunnerCommand {
  return limitedCommand(node, nodeArguments(engine), { fileBlocks: 0 }, exists);
}

/**
 * Kernel limits apply as well where something can set them: no core file, files of at most `fileBlocks` blocks, limited processor time. The launcher
 * of an image also makes the process the first to end without memory, and confines it with Landlock, which lets it write files of at most
 * 64 MiB in the folders `writable` and no others; elsewhere a shell sets the limits, and receives constants and paths as separate
 * arguments, never as text to interpret.
 */
export function limitedCommand(
  node: string,
  args: string[],
  { fileBlocks, writable = [] }: { fileBlocks: number; writable?: readonly string[] },
  exists: (path: string) => boolean = existsSync,
): RunnerCommand {
  const launcher = join(dirname(node), LAUNCHER);
  const folders = writable.flatMap((folder) => ['--writable', folder]);
  if (exists(launcher)) return { command: launcher, args: ['runner', ...folders, node, ...args] };
  if (!exists(SHELL)) return { command: node, args };
  const limits = `ulimit -c 0; ulimit -f ${fileBlocks}; ulimit -t ${MAX_PROCESSOR_SECONDS}; exec "$0" "$@"`;
  return { command: SHELL, args: ['-c', limits, node, ...args] };
}

function nodeArguments(engine: EngineFiles): string[] {
  return [
    '--permission',
    '--allow-addons',
    ...engine.folders.map((folder) => `--allow-fs-read=${folder}/*`),
    // The loader of the engine looks for this file to choose between two C libraries.
    '--allow-fs-read=/etc/alpine-release',
    '--no-node-snapshot',
    '--no-strip-types',
    '--disable-proto=throw',
    '--no-warnings',
    `--max-old-space-size=${RUNNER_HEAP_MIB}`,
    '--eval',
    LOADER,
  ];
}
