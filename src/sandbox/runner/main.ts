/**
 * The runner: a process without secrets that runs one job after another until the supervisor closes its standard input or
 * kills it. It receives its modules as text (see program.ts), so they may import only each other and built-in modules of
 * Node.
 */
import type { RunFrame } from '../protocol.ts';
import { type GuestEnvironment, loadEngine, type EnvironmentShape } from './engine.ts';
import { runJob } from './job.ts';
import { readFrame, writeFrame } from './pipe.ts';

const DEFAULT_SHAPE: EnvironmentShape = { memoryBytes: 134_217_728, apis: [] };

/** Runs jobs until the supervisor closes the pipe. `enginePath`: the file of the engine. */
export function main(enginePath: string): void {
  process.env['TZ'] = 'UTC';
  const engine = loadEngine(enginePath);
  writeFrame({ type: 'hello', runtime: process.versions.node, engine: engine.version });
  let environment: GuestEnvironment = engine.prepare(DEFAULT_SHAPE);
  for (;;) {
    writeFrame({ type: 'ready' });
    const frame = nextJob();
    if (frame === undefined) return;
    const shape: EnvironmentShape = { memoryBytes: frame.memoryBytes, apis: frame.apis };
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

/** Waits for the next job. Drops responses to a job that has already ended. */
function nextJob(): RunFrame | undefined {
  for (;;) {
    const frame = readFrame();
    if (frame === undefined || frame.type === 'run') return frame;
  }
}

function sameShape(first: EnvironmentShape, second: EnvironmentShape): boolean {
  return first.memoryBytes === second.memoryBytes && first.apis.join() === second.apis.join();
}
