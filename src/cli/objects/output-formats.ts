export const LIST_FORMATS = ['text', 'wide', 'json', 'yaml', 'name'] as const;
export type ListFormat = (typeof LIST_FORMATS)[number];
export const OBJECT_FORMATS = ['text', 'json', 'yaml'] as const;
export type ObjectFormat = (typeof OBJECT_FORMATS)[number];

/** The formats that print the objects themselves instead of a table. */
export type DataFormat = 'json' | 'yaml' | 'name';

export function isDataFormat(format: ListFormat): format is DataFormat {
  return format === 'json' || format === 'yaml' || format === 'name';
}
