/** The error codes of state folders, a part of `ERROR_CODES`. */
export const STATE_ERROR_CODES = {
  TEMPER_STATE_NOT_FOUND: {
    meaning: 'The state folder does not exist, or the folder is not a state folder.',
    fix: 'Name the state folder of a run with --state, or start a run first.',
  },
  TEMPER_STATE_UNUSABLE: {
    meaning: 'The state folder cannot be created, read or written.',
    fix: 'Correct the path or its permissions, or name another folder with --state.',
  },
  TEMPER_STATE_LOCKED: {
    meaning: 'Another process has locked the state folder.',
    fix: 'End that process or wait until it ends, then repeat the command; the message has its process id and its command.',
  },
  TEMPER_STATE_CORRUPT: {
    meaning: 'A file of the state folder cannot be read.',
    fix: 'Restore the named file, or move it away.',
  },
  TEMPER_STATE_UNTRUSTED: {
    meaning:
      'Other users may change the state folder, it has a link or a special file, or nothing proves that this user wrote it.',
    fix: 'Run the command in the message, take over a folder whose content you trust with `temper audit --adopt`, or name another --state.',
  },
  TEMPER_STATE_KEY_UNUSABLE: {
    meaning: 'The key that signs the state folders of this user cannot be read, created or kept secret.',
    fix: 'Correct the file that the message names, or set XDG_CONFIG_HOME to another folder.',
  },
  TEMPER_STATE_FORMAT: {
    meaning: 'Another version wrote the state folder, in a format that this version would misread.',
    fix: 'Follow the message, use the version that wrote the folder, or use another --state.',
  },
} as const;
