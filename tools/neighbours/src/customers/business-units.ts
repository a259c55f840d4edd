/** A building that the platform's customers run. */
export interface Facility {
  facilityId: number;
  name: string;
  timeZone: string;
}

/** A customer's organisational unit and the facilities it has access to. */
export interface BusinessUnit {
  businessUnitId: number;
  plt: string;
  name: string;
  timeZone: string;
  facilityIds: readonly number[];
  status: 'Inactive' | 'Active';
}

export type ChangeType = 'Activated' | 'Deactivated' | 'Updated';

/** A change of a business unit, as `IBusinessUnitChangeV1` carries it. */
export interface BusinessUnitChange {
  eventId: string;
  occurredAtUtc: string;
  businessUnitId: number;
  facilityIds: number[];
  changeType: ChangeType;
  timeZone: string;
}

export const FACILITIES: readonly Facility[] = [
  { facilityId: 501, name: 'Harbour House', timeZone: 'Europe/Berlin' },
  { facilityId: 502, name: 'Mill Lane Court', timeZone: 'Europe/Berlin' },
  { facilityId: 503, name: 'Orchard Terrace', timeZone: 'America/New_York' },
  { facilityId: 504, name: 'Station Square', timeZone: 'America/New_York' },
];

const BUSINESS_UNITS: readonly BusinessUnit[] = [
  {
    businessUnitId: 77,
    plt: 'PLT-77',
    name: 'Northern Homes',
    timeZone: 'Europe/Berlin',
    facilityIds: [501, 502],
    status: 'Inactive',
  },
  {
    businessUnitId: 78,
    plt: 'PLT-78',
    name: 'Eastern Estates',
    timeZone: 'America/New_York',
    facilityIds: [503, 504],
    status: 'Inactive',
  },
];

/** A requested change; omitted fields keep the unit's values. */
export interface RequestedChange {
  changeType: ChangeType;
  facilityIds?: readonly number[] | undefined;
  timeZone?: string | undefined;
}

/**
 * Business units with the changes made to them so far. They are in memory only; the ledger of changes is
 * durable.
 */
export class BusinessUnits {
  private readonly units = new Map<number, BusinessUnit>();
  private readonly draftedAtMs = new Map<number, number>();
  private readonly appliedAtMs = new Map<number, number>();

  constructor(units: readonly BusinessUnit[] = BUSINESS_UNITS) {
    for (const unit of units) this.units.set(unit.businessUnitId, unit);
  }

  find(businessUnitId: number): BusinessUnit | null {
    return this.units.get(businessUnitId) ?? null;
  }

  findByPlt(plt: string): BusinessUnit | null {
    return [...this.units.values()].find((unit) => unit.plt === plt) ?? null;
  }

  /**
   * Returns the change that `requested` makes to `unit`. Instants of one unit strictly increase, because its
   * consumers keep the later of two changes and would drop one of two made within a millisecond.
   */
  draft(unit: BusinessUnit, requested: RequestedChange, eventId: string, now: Date): BusinessUnitChange {
    const latestMs = Math.max(
      this.draftedAtMs.get(unit.businessUnitId) ?? -Infinity,
      this.appliedAtMs.get(unit.businessUnitId) ?? -Infinity,
    );
    const occurredAtMs = Math.max(now.getTime(), latestMs + 1);
    this.draftedAtMs.set(unit.businessUnitId, occurredAtMs);
    return {
      eventId,
      occurredAtUtc: new Date(occurredAtMs).toISOString(),
      businessUnitId: unit.businessUnitId,
      facilityIds: [...(requested.facilityIds ?? unit.facilityIds)],
      changeType: requested.changeType,
      timeZone: requested.timeZone ?? unit.timeZone,
    };
  }

  /** Applies a published change. Ignores a change that is older than the last one applied. */
  apply(change: BusinessUnitChange): void {
    const unit = this.units.get(change.businessUnitId);
    if (unit === undefined) return;
    const occurredAtMs = Date.parse(change.occurredAtUtc);
    if (occurredAtMs < (this.appliedAtMs.get(change.businessUnitId) ?? -Infinity)) return;
    this.appliedAtMs.set(change.businessUnitId, occurredAtMs);
    this.units.set(change.businessUnitId, {
      ...unit,
      facilityIds: change.facilityIds,
      timeZone: change.timeZone,
      status: STATUS_AFTER[change.changeType] ?? unit.status,
    });
  }
}

const STATUS_AFTER = {
  Activated: 'Active',
  Deactivated: 'Inactive',
  Updated: null,
} as const satisfies Record<ChangeType, BusinessUnit['status'] | null>;
