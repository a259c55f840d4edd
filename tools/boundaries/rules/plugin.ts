import { moduleBoundaries } from './module-boundaries.ts';
import { noImportCycle } from './no-import-cycle.ts';
import { plainFileIsPure } from './plain-file-is-pure.ts';
import { tellingNames } from './telling-names.ts';
import { todoHasReason } from './todo-has-reason.ts';
import { noWallClock } from './wall-clock.ts';

/** The rules of the house that no published plugin has. Each is proved by a fixture in ../fixtures. */
export const housePlugin = {
  meta: { name: 'house' },
  rules: {
    'module-boundaries': moduleBoundaries,
    'plain-file-is-pure': plainFileIsPure,
    'telling-names': tellingNames,
    'todo-has-reason': todoHasReason,
    'no-wall-clock': noWallClock,
    'no-import-cycle': noImportCycle,
  },
};
