/** Serves one session until the supervisor closes the pipe or kills the process. */
import type { ToolApi } from '../../../api/v1alpha1/common.ts';
import type { ExecuteFrame, OpenFrame } from '../../session/frames.ts';
import type { EngineModule } from '../engine.ts';
import { readFrame, writeFrame } from '../pipe.ts';
import { CodeExecution } from './execution.ts';

const SESSION_APIS: readonly ToolApi[] = ['clock', 'random', 'crypto'];
const RESTORE_MS = 5_000;

export function serveSession(engine: EngineModule, open: OpenFrame): void {
  const { memoryBytes, memory, snapshotBytes } = open;
  const environment = engine.prepare({ memoryBytes, apis: SESSION_APIS, isSession: true });
  if (environment.enter('restore', memory, '', 0, RESTORE_MS) !== 'returned') return;
  writeFrame({ type: 'opened' });
  for (;;) {
    const frame = nextExecution();
    if (frame === undefined) return;
    const executed = new CodeExecution(environment, frame, snapshotBytes).execute();
    if (executed === undefined) return;
    writeFrame(executed);
    if (executed.memory === undefined) return;
  }
}

/** Waits for the next run. Drops answers to a run that has already ended. */
function nextExecution(): ExecuteFrame | undefined {
  for (;;) {
    const frame = readFrame();
    if (frame === undefined || frame.type === 'execute') return frame;
  }
}
