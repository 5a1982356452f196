// SPDX-License-Identifier: Apache-2.0
// One thread works for all that ask for the same key at once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace castor {

/// Work under way, by key. Everything here is guarded by the mutex that it is given.
template <class Key, class Outcome, class Equal>
class SingleFlight {
  /// One key's work.
  struct Flight {
    Flight(uint64_t hash_of_key, const Key& asked) : hash(hash_of_key), key(&asked) {}
    uint64_t hash;
    const Key* key;  // the working thread's, until it ends the flight
    bool ended = false;
    std::optional<Outcome> outcome;  // none after the end: the work was given up
    std::condition_variable has_ended;
  };

 public:
  using FlightPtr = std::shared_ptr<Flight>;

  explicit SingleFlight(std::mutex& mutex) : mutex_(mutex) {}

  /// The flight that another thread began for this key; or null. With the lock held.
  FlightPtr find(uint64_t hash, const Key& key) const {
    for (const FlightPtr& flight : flights_) {
      if (flight->hash == hash && Equal{}(*flight->key, key)) return flight;
    }
    return nullptr;
  }

  /// Waits until the flight ends, and gives the lock away meanwhile. What it came to, or nothing
  /// when it was given up.
  static std::optional<Outcome> wait(std::unique_lock<std::mutex>& lock, const FlightPtr& flight) {
    flight->has_ended.wait(lock, [&] { return flight->ended; });
    return flight->outcome;
  }

  /// A flight of the calling thread, which ends with this object at the latest, come what may.
  class Begun {
   public:
    /// With the lock held. `key` outlives the object. Throws std::bad_alloc.
    Begun(SingleFlight& flights, uint64_t hash, const Key& key)
        : flights_(flights), flight_(std::make_shared<Flight>(hash, key)) {
      flights_.flights_.push_back(flight_);
    }
    /// Without the lock. Gives up what has not ended.
    ~Begun() {
      if (flight_ == nullptr) return;
      const std::lock_guard lock(flights_.mutex_);
      finish();
    }
    Begun(const Begun&) = delete;
    Begun& operator=(const Begun&) = delete;

    /// With the lock held: hands the outcome to all who wait. At most once.
    void end(const Outcome& outcome) {
      flight_->outcome.emplace(outcome);
      finish();
    }

   private:
    void finish() noexcept {
      std::erase(flights_.flights_, flight_);
      flight_->ended = true;
      flight_->has_ended.notify_all();
      flight_ = nullptr;
    }

    SingleFlight& flights_;
    FlightPtr flight_;
  };

 private:
  std::mutex& mutex_;
  std::vector<FlightPtr> flights_;
};

}  // namespace castor
