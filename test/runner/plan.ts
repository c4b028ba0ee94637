// Which test files share a process, and which file starts first. `node --test` starts a process per file: loading the modules costs most
// unit tests more than running them, so these files run in groups, one file after the other. See process-state.ts for the rule of a group.

/** The number of files of a group. Groups of fewer files load the same modules more often; larger ones leave a processor idle at the end. */
const GROUP_SIZE = 30;

/** What only the first module of a process can set, or what files that ran before change. */
const NEEDS_OWN_PROCESS = /setFlagsFromString|memoryUsage|getHeapStatistics|--expose-gc/;

/**
 * The files that take more than half a minute, the slowest first. A slow file that starts last leaves the other processor idle. Between the
 * files with a node of their own are others, because three nodes at once need more than two processors.
 */
export const SLOW_FILES: readonly string[] = [
  'test/e2e/acceptance.test.ts',
  'test/e2e/kills.test.ts',
  'test/integration/operator/faults.test.ts',
  'test/integration/operator/promotion.test.ts',
  'test/integration/gitops/gitea.test.ts',
  'test/integration/gateway/neighbours/connections.test.ts',
  'test/e2e/quickstart.test.ts',
  'test/integration/gateway/models.test.ts',
  'test/integration/operator/nats.test.ts',
  'test/integration/operator/agent-conditions.test.ts',
  'test/integration/nats/crash.test.ts',
  'test/integration/gateway/drain.test.ts',
  'test/integration/nats/three-servers.test.ts',
  'test/integration/api-server/invalid-objects.test.ts',
  'test/integration/gateway/delivery.test.ts',
  'test/integration/operator/node-failure.test.ts',
  'test/integration/gateway/neighbours/storage.test.ts',
  'test/integration/operator/tool-approvals.test.ts',
  'test/integration/operator/replacement.test.ts',
  'test/integration/operator/operator.test.ts',
  'test/system/documented-commands.test.ts',
  'test/system/run/run.test.ts',
  'test/system/demo.test.ts',
];

export interface TestFile {
  readonly path: string;
  readonly source: string;
}

/** The processes of a test run in the order of their start: each one runs its files one after the other. */
export function plannedProcesses(
  alone: readonly string[],
  grouped: readonly TestFile[],
): readonly (readonly string[])[] {
  const separate = grouped.filter(({ source }) => NEEDS_OWN_PROCESS.test(source)).map(({ path }) => path);
  const single = [...alone, ...separate];
  const slow = SLOW_FILES.filter((file) => single.includes(file));
  const others = single.filter((file) => !SLOW_FILES.includes(file)).sort();
  const together = grouped.map(({ path }) => path).filter((path) => !separate.includes(path));
  return [...[...slow, ...others].map((file) => [file]), ...groupsOf(together.sort())];
}

/** Neighbours share most of their modules. */
function groupsOf(files: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(files.length / GROUP_SIZE);
  return Array.from({ length: count }, (_, group) => files.slice(group * GROUP_SIZE, (group + 1) * GROUP_SIZE));
}
