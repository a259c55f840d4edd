import { join } from 'node:path';
import { describeMigrations } from '@platform/testing';
import { MIGRATIONS } from '../src/database-layout';

describeMigrations(join(__dirname, '../src/migrations'), MIGRATIONS, {
  // The table has one row per business unit, which are few.
  BusinessUnitFacilities1800000002000: [/UPDATE task\.business_unit_changes/],
  // Only a message consumer locks both tables, and it retries a transaction that loses a deadlock.
  BusinessUnitsInAnyOrder1800000013000: [/UPDATE task\.business_units/, /locks several tables/],
  ScheduleLifecycle1800000001000: [/locks several tables/],
});
