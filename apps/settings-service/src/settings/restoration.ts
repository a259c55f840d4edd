import type { ListedSetting } from './setting.entity';
import type { AuditTrail } from './write-request';

/** A setting that a restoration writes or deletes. */
export interface RestoredSetting {
  readonly settingName: string;
  readonly operation: 'write' | 'delete';
}

/** The subsystem to restore, and the instant to restore it to. */
export interface SubsystemRestoration {
  readonly subsystemKey: string;
  readonly at: Date;
  /** The audit trail of the history entries. Null for a dry run. */
  readonly trail: AuditTrail | null;
}

/** A setting that differs from its state at the instant. */
export interface DifferentSetting extends RestoredSetting {
  readonly settingKey: string;
  /** Bytes of the value to write or delete. */
  readonly bytes: number;
}

/** The name of a setting that a subsystem has or had. */
export type PastName = Pick<ListedSetting, 'settingKey' | 'settingName'>;

/**
 * The differences in one part of a subsystem. `last` is the key after which the next part starts; null for
 * the last part.
 */
export interface ComparedPart {
  readonly different: readonly DifferentSetting[];
  readonly compared: number;
  readonly last: string | null;
}
