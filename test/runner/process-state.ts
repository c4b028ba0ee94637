// The state that the modules of a process share. A test file that leaves it changed would decide the result of the files after it, so the
// group fails that file. It restores what it changes, or plan.ts gives it a process of its own.

/** Comparable values of the process, by what they are called in a message. */
export type ProcessState = ReadonlyMap<string, unknown>;

/** Libraries add globals of their own when they load. */
const GLOBALS = Object.getOwnPropertyNames(globalThis);
const EVENTS = [
  'uncaughtException',
  'unhandledRejection',
  'warning',
  'beforeExit',
  'message',
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
];
const METHODS: Readonly<Record<string, object>> = {
  process,
  console,
  performance,
  Date,
  Math,
  JSON,
  Object,
  Array,
  Promise,
};

export function processState(): ProcessState {
  const variables = Object.entries(process.env).map(([name, value]) => [`process.env.${name}`, value] as const);
  const globals = GLOBALS.map((name) => [`globalThis.${name}`, valueOf(globalThis, name)] as const);
  const methods = Object.entries(METHODS).flatMap(([owner, object]) =>
    Object.getOwnPropertyNames(object).map((name) => [`${owner}.${name}`, functionOf(object, name)] as const),
  );
  return new Map<string, unknown>([
    ...variables,
    ...globals,
    ...methods,
    ...EVENTS.map((event) => [`listeners of ${event}`, process.listenerCount(event)] as const),
    ['process.cwd()', process.cwd()],
    ['process.umask()', process.umask()],
    ['process.exitCode', process.exitCode],
  ]);
}

/** The names of what differs. */
export function changes(before: ProcessState, after: ProcessState): readonly string[] {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].filter((name) => !Object.is(before.get(name), after.get(name))).sort();
}

/** Undefined for an accessor: reading it may load a module of Node, and replace the accessor. */
function valueOf(object: object, name: string): unknown {
  return Object.getOwnPropertyDescriptor(object, name)?.value;
}

function functionOf(object: object, name: string): unknown {
  const value = valueOf(object, name);
  return typeof value === 'function' ? value : undefined;
}
