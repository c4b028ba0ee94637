/**
 * The runner: a process without secrets that runs one job after another until the supervisor closes its standard input or
 * kills it. It receives its modules as text (see program.ts), so they may import only each other and built-in modules of
 * Node.
 */
import type { RunFrame } from '../protocol.ts';
import type { OpenFrame } from '../session/frames.ts';
import { type EngineModule, type EnvironmentShape, type GuestEnvironment, loadEngine } from './engine.ts';
import { runJob } from './job.ts';
import { readFrame, writeFrame } from './pipe.ts';
import { serveSession } from './session/session.ts';

const DEFAULT_SHAPE: EnvironmentShape = { memoryBytes: 134_217_728, apis: [] };

const WARM_UP: RunFrame = {
  type: 'run',
  job: 0,
  source: 'function execute(input) { return input; }',
  input: '{"text":"","numbers":[0]}',
  ...DEFAULT_SHAPE,
  durationMilliseconds: 1_000,
  outputBytes: 1_024,
  hostCalls: 0,
  hostBytes: 0,
  startTime: 0,
  seed: '',
};

/** Runs jobs, or one session, until the supervisor closes the pipe. `enginePath`: the file of the engine. */
export function main(enginePath: string): void {
  process.env['TZ'] = 'UTC';
  const engine = loadEngine(enginePath);
  writeFrame({ type: 'hello', runtime: process.versions.node, engine: engine.version });
  warmUp(engine, DEFAULT_SHAPE);
  let environment: GuestEnvironment = engine.prepare(DEFAULT_SHAPE);
  for (;;) {
    writeFrame({ type: 'ready' });
    const frame = nextJob();
    if (frame === undefined) return;
    if (frame.type === 'open') {
      environment.dispose();
      serveSession(engine, frame);
      return;
    }
    const shape: EnvironmentShape = { memoryBytes: frame.memoryBytes, apis: frame.apis };
    if (!sameShape(environment.shape, shape)) {
      environment.dispose();
      environment = engine.prepare(shape);
    }
    const done = runJob(environment, frame);
    if (done === undefined) return;
    writeFrame(done);
    environment.dispose();
    if (!engine.hasCode(shape)) warmUp(engine, shape);
    environment = engine.prepare(shape);
  }
}

/**
 * Runs a job of this process itself in an isolate of its own, before the first job and after the first one of each shape: the first job
 * compiles and links what all later ones use, and takes several times as long.
 */
function warmUp(engine: EngineModule, shape: EnvironmentShape): void {
  const environment = engine.prepare(shape);
  runJob(environment, { ...WARM_UP, ...shape });
  environment.keepCode();
  environment.dispose();
}

/** Waits for the next job, or for a session. Drops responses to a job that has already ended. */
function nextJob(): RunFrame | OpenFrame | undefined {
  for (;;) {
    const frame = readFrame();
    if (frame === undefined || frame.type === 'run' || frame.type === 'open') return frame;
  }
}

function sameShape(first: EnvironmentShape, second: EnvironmentShape): boolean {
  return first.memoryBytes === second.memoryBytes && first.apis.join() === second.apis.join();
}
