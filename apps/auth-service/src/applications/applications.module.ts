import { Module } from '@nestjs/common';
import { RateLimitsModule } from '../rate-limits/rate-limits.module';
import { ApplicationProofs } from './application-proofs.service';
import { ApplicationsRepository } from './applications.repository';
import { TokenApplicationsService } from './token-applications.service';
import { TrustSignaturesRepository } from './trust-signatures.repository';

/** The applications that get tokens, and how they prove themselves. */
@Module({
  imports: [RateLimitsModule],
  providers: [ApplicationsRepository, ApplicationProofs, TrustSignaturesRepository, TokenApplicationsService],
  exports: [ApplicationsRepository, TokenApplicationsService],
})
export class ApplicationsModule {}
