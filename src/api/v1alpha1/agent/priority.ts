import { Type } from 'typebox';
import { DEFAULT_PRIORITY, PRIORITIES } from '../../limits/priority.ts';

export const Priority = Type.Enum([...PRIORITIES], { default: DEFAULT_PRIORITY });
