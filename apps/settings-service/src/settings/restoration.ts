import type { ListedSetting } from './setting.entity';
import type { AuditTrail } from './write-request';

/** What a restored subsystem has anew, or no longer. */
export interface RestoredSetting {
  readonly settingName: string;
  readonly operation: 'write' | 'delete';
}

/** Which subsystem goes back to which instant. */
export interface SubsystemRestoration {
  readonly subsystemKey: string;
  readonly at: Date;
  /** For the history; null: it only says what would change. */
  readonly trail: AuditTrail | null;
}

/** A setting that differs from what it was. */
export interface DifferentSetting extends RestoredSetting {
  readonly settingKey: string;
  /** Of the value that it had. */
  readonly bytes: number;
}

/** A name that a subsystem has, or had. */
export type PastName = Pick<ListedSetting, 'settingKey' | 'settingName'>;

/** What a part of a subsystem differs in; `last` leads to the next part, null after the last one. */
export interface ComparedPart {
  readonly different: readonly DifferentSetting[];
  readonly compared: number;
  readonly last: string | null;
}
