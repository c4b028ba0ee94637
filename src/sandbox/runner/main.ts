/**
 * The runner: a process that holds nothing worth stealing and runs one piece of guest code after another until the
 * supervisor closes its input or kills it. Its modules are handed to it as text (see program.ts), so they import only
 * each other and what Node has.
 */
import type { RunFrame } from '../protocol.ts';
import { type Environment, loadEngine, type Shape } from './engine.ts';
import { runJob } from './job.ts';
import { readFrame, writeFrame } from './pipe.ts';

const FIRST_SHAPE: Shape = { memoryBytes: 134_217_728, apis: [] };

/** Serves until the supervisor is gone. `enginePath`: the file the engine is loaded from. */
export function main(enginePath: string): void {
  process.env['TZ'] = 'UTC';
  const engine = loadEngine(enginePath);
  writeFrame({ type: 'hello', runtime: process.versions.node, engine: engine.version });
  let environment: Environment = engine.prepare(FIRST_SHAPE);
  for (;;) {
    writeFrame({ type: 'ready' });
    const frame = nextJob();
    if (frame === undefined) return;
    const shape: Shape = { memoryBytes: frame.memoryBytes, apis: frame.apis };
    if (!sameShape(environment.shape, shape)) {
      environment.dispose();
      environment = engine.prepare(shape);
    }
    const done = runJob(environment, frame);
    if (done === undefined) return;
    writeFrame(done);
    environment.dispose();
    environment = engine.prepare(shape);
  }
}

/** Answers to a job that ended without waiting for them are dropped. */
function nextJob(): RunFrame | undefined {
  for (;;) {
    const frame = readFrame();
    if (frame === undefined || frame.type === 'run') return frame;
  }
}

function sameShape(one: Shape, other: Shape): boolean {
  return one.memoryBytes === other.memoryBytes && one.apis.join() === other.apis.join();
}
