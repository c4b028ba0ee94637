/** Folders of libraries and of shared data. None of them holds files of users or agents. */
const SYSTEM_FILES = [
  '/usr/lib',
  '/usr/lib64',
  '/usr/libexec',
  '/usr/share',
  '/usr/include',
  '/usr/local/lib',
  '/usr/local/share',
  '/usr/local/include',
  '/lib',
  '/lib64',
  '/etc/ld.so.cache',
  '/etc/localtime',
];

/** At most so many processes and threads at a time. */
const MAX_TASKS = 256;

export interface ConfinedFiles {
  /** Further folders that the program may read. */
  readable?: readonly string[];
  /** Folders that the program may read and write. */
  writable: readonly string[];
  executable: readonly string[];
  memoryMebibytes: number;
}

/** The arguments of the launcher. The program may read what it may execute, write its folders, and read the libraries of the system. */
export function confinedArguments(
  { file, name, args }: { file: string; name: string; args: readonly string[] },
  { readable = [], writable, executable, memoryMebibytes }: ConfinedFiles,
): string[] {
  return [
    'program',
    ...[...SYSTEM_FILES, ...readable].flatMap((path) => ['--read', path]),
    ...writable.flatMap((path) => ['--write', path]),
    ...executable.flatMap((path) => ['--execute', path]),
    '--tasks',
    String(MAX_TASKS),
    '--memory',
    String(memoryMebibytes),
    file,
    name,
    ...args,
  ];
}
