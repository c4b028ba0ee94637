/** How a runner is started: which binary, which rights, which limits of the kernel. */
import { existsSync } from 'node:fs';
import type { EngineFiles } from './engine-floor.ts';

export interface LaunchPlan {
  command: string;
  args: string[];
}

/** Reads one frame with the program, and runs it. Everything else is in the program. */
const LOADER = [
  "const {readSync:r}=require('fs')",
  'const f=b=>{for(let o=0;o<b.length;){const n=r(0,b,o,b.length-o,null);if(n===0)process.exit(0);o+=n}return b}',
  'const{program,engine}=JSON.parse(f(Buffer.alloc(f(Buffer.alloc(4)).readUInt32BE(0))))',
  'eval(program)(engine)',
].join(';');

/** Heap of the runner itself in MiB; the engine gives guest code a heap of its own. */
const OWN_HEAP = 96;

/** Seconds of processor time after which the kernel ends a runner, should its supervisor have died without ending it. */
const PROCESSOR_SECONDS = 900;

const SHELL = '/bin/sh';

/**
 * With a shell present, the kernel also holds: no core file, no file written at all, a bound on processor time.
 * The shell sees constants and paths as separate arguments, never text to interpret.
 */
export function planLaunch(node: string, engine: EngineFiles, shellExists = existsSync(SHELL)): LaunchPlan {
  const args = [
    '--permission',
    '--allow-addons',
    ...engine.folders.map((folder) => `--allow-fs-read=${folder}/*`),
    // The loader of the engine looks for this file to choose between two C libraries.
    '--allow-fs-read=/etc/alpine-release',
    '--no-node-snapshot',
    '--no-strip-types',
    '--disable-proto=throw',
    '--no-warnings',
    `--max-old-space-size=${OWN_HEAP}`,
    '--eval',
    LOADER,
  ];
  if (!shellExists) return { command: node, args };
  const limits = `ulimit -c 0; ulimit -f 0; ulimit -t ${PROCESSOR_SECONDS}; exec "$0" "$@"`;
  return { command: SHELL, args: ['-c', limits, node, ...args] };
}
