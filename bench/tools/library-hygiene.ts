import { type Digest, sha256 } from '../../src/lib/canonical.ts';
import { assessTools } from '../../src/tempering/hygiene/assess-tools.ts';
import {
  HARMFUL_TOOLS,
  isHarmful,
  LIBRARY_TOOLS,
  LIBRARY_TURNS,
  type LibraryOptions,
  ReplayedLibrary,
} from '../../src/tempering/hygiene/replayed-library.testing.ts';
import type { ToolTask } from '../../src/tempering/hygiene/tool-task.ts';
import type { BenchRow } from '../row.ts';

const SEEDS = 20;
const MAX_HARM_PERCENT = 20;
const MAX_USES = 10;
const TOOLS = Array.from({ length: LIBRARY_TOOLS }, (_, tool) => tool);
const DIGESTS: readonly Digest[] = TOOLS.map((tool) => sha256(`tool ${tool}`));

const LIBRARIES: readonly Omit<LibraryOptions, 'seed'>[] = [
  { minHarmPercent: 95, basePercent: 8 },
  { minHarmPercent: 80, basePercent: 8 },
  { minHarmPercent: 60, basePercent: 8 },
  { minHarmPercent: 95, basePercent: 25 },
];

/** Error rates of the assessment of tools, over libraries of 60 tools and 500 tasks each. Counts, so the load does not matter. */
export function benchLibraryHygiene(): BenchRow[] {
  return LIBRARIES.map((library) => {
    const runs = Array.from({ length: SEEDS }, (_, seed) => replay({ ...library, seed }));
    const sum = (of: (run: LibraryRun) => number): number => runs.reduce((total, run) => total + of(run), 0);
    const usesUntilOut = runs.flatMap(({ usesOfRemoved }) => usesOfRemoved).sort((a, b) => a - b);
    const useful = SEEDS * (LIBRARY_TOOLS - HARMFUL_TOOLS);
    const removedUseful = sum((run) => run.removedUseful);
    return {
      name: `library hygiene: harm from ${library.minHarmPercent} %, ${library.basePercent} % of the tasks end badly anyway`,
      figures: {
        'useful tools removed': `${removedUseful} of ${useful}`,
        'harmful tools used more than 10 times': `${sum((run) => run.late)} of ${SEEDS * HARMFUL_TOOLS}`,
        'harmful tools removed': `${usesUntilOut.length} of ${SEEDS * HARMFUL_TOOLS}`,
        'uses until removed': `median ${usesUntilOut[Math.floor(usesUntilOut.length / 2)] ?? '-'}, most ${usesUntilOut.at(-1) ?? '-'}`,
      },
      limit: 'at most 1 % of the useful tools removed',
      met: removedUseful * 100 <= useful,
    };
  });
}

interface LibraryRun {
  readonly removedUseful: number;
  readonly late: number;
  /** Of the harmful tools that were removed. */
  readonly usesOfRemoved: readonly number[];
}

function replay(options: LibraryOptions): LibraryRun {
  const library = new ReplayedLibrary(options);
  const removed = new Set<number>();
  const uses = TOOLS.map(() => 0);
  const tasks: ToolTask[] = [];
  for (let turn = 0; turn < LIBRARY_TURNS; turn += 1) {
    const tools = library.chooseTools(TOOLS.filter((tool) => !removed.has(tool)));
    for (const tool of tools) uses[tool] = (uses[tool] ?? 0) + 1;
    const digests = tools.flatMap((tool) => DIGESTS[tool] ?? []);
    tasks.push({ endedAt: turn, endedWell: library.endsWell(tools), tools: digests });
    for (const { digest, isHarmful: isOut } of assessTools(tasks, MAX_HARM_PERCENT))
      if (isOut) removed.add(DIGESTS.indexOf(digest));
  }
  const harmful = TOOLS.filter(isHarmful);
  return {
    removedUseful: [...removed].filter((tool) => !isHarmful(tool)).length,
    late: harmful.filter((tool) => (uses[tool] ?? 0) > MAX_USES).length,
    usesOfRemoved: harmful.filter((tool) => removed.has(tool)).map((tool) => uses[tool] ?? 0),
  };
}
